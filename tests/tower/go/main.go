// Runs the interoperability cases of grpc-go, as that project asserts them, against a server, and cases of its own
// with compressed and with large messages.
//
//	interop [-tls] [-except CASE] ADDRESS [CASE]...
//	interop -serve
//
// Without a case it runs all. A case that fails ends the program with status 1. With -tls, any certificate will do.
//
// With -serve it is the server: it prints two ports, the first without TLS, and ends with its standard input.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// How long all of them may take.
const limit = 2 * time.Minute

type client struct {
	connection *grpc.ClientConn
	test       pb.TestServiceClient
}

type testCase struct {
	name string
	run  func(context.Context, client)
}

// on makes a case of one that takes the usual client.
func on(name string, do func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) testCase {
	return testCase{name, func(ctx context.Context, c client) { do(ctx, c.test) }}
}

// compressed makes a case whose messages are compressed.
func compressed(name string, do func(context.Context, pb.TestServiceClient, ...grpc.CallOption)) testCase {
	return testCase{name + "_compressed", func(ctx context.Context, c client) {
		do(ctx, c.test, grpc.UseCompressor(gzip.Name))
	}}
}

var cases = []testCase{
	on("empty_unary", interop.DoEmptyUnaryCall),
	on("large_unary", interop.DoLargeUnaryCall),
	on("client_streaming", interop.DoClientStreaming),
	on("server_streaming", interop.DoServerStreaming),
	on("ping_pong", interop.DoPingPong),
	on("empty_stream", interop.DoEmptyStream),
	on("timeout_on_sleeping_server", interop.DoTimeoutOnSleepingServer),
	on("cancel_after_begin", interop.DoCancelAfterBegin),
	on("cancel_after_first_response", interop.DoCancelAfterFirstResponse),
	on("custom_metadata", interop.DoCustomMetadata),
	on("status_code_and_message", interop.DoStatusCodeAndMessage),
	on("special_status_message", interop.DoSpecialStatusMessage),
	{"unimplemented_method", func(ctx context.Context, c client) {
		interop.DoUnimplementedMethod(ctx, c.connection)
	}},
	{"unimplemented_service", func(ctx context.Context, c client) {
		interop.DoUnimplementedService(ctx, pb.NewUnimplementedServiceClient(c.connection))
	}},
	compressed("large_unary", interop.DoLargeUnaryCall),
	compressed("client_streaming", interop.DoClientStreaming),
	compressed("server_streaming", interop.DoServerStreaming),
	compressed("ping_pong", interop.DoPingPong),
	{"largest_messages", largest},
}

// largest sends and awaits messages just below what a peer takes by default, 4 MiB, one by one and in a stream.
func largest(ctx context.Context, c client) {
	const size = 4<<20 - 100
	payload := interop.ClientNewPayload(pb.PayloadType_COMPRESSABLE, size)
	answer, err := c.test.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: size, Payload: payload})
	if err != nil {
		fail("largest_messages:", err)
	}
	if got := len(answer.GetPayload().GetBody()); got != size {
		fail("largest_messages: a message of", got)
	}
	stream, err := c.test.FullDuplexCall(ctx)
	if err != nil {
		fail("largest_messages:", err)
	}
	for range 4 {
		wanted := []*pb.ResponseParameters{{Size: size}}
		err := stream.Send(&pb.StreamingOutputCallRequest{ResponseParameters: wanted, Payload: payload})
		if err != nil {
			fail("largest_messages:", err)
		}
		answer, err := stream.Recv()
		if err != nil {
			fail("largest_messages:", err)
		}
		if got := len(answer.GetPayload().GetBody()); got != size {
			fail("largest_messages: a streamed message of", got)
		}
	}
	if err := stream.CloseSend(); err != nil {
		fail("largest_messages:", err)
	}
}

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}

func main() {
	overTLS := flag.Bool("tls", false, "ask over TLS, whatever the certificate")
	except := flag.String("except", "", "a case that is left out")
	serves := flag.Bool("serve", false, "be the server")
	flag.Parse()
	if *serves {
		serve()
		return
	}
	if flag.NArg() < 1 {
		fail("the server's address is missing")
	}
	transport := insecure.NewCredentials()
	if *overTLS {
		transport = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	connection, err := grpc.NewClient(flag.Arg(0), grpc.WithTransportCredentials(transport))
	if err != nil {
		fail(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	wanted := map[string]bool{}
	for _, name := range flag.Args()[1:] {
		wanted[name] = true
	}
	c := client{connection, pb.NewTestServiceClient(connection)}
	for _, one := range cases {
		if one.name != *except && (len(wanted) == 0 || wanted[one.name]) {
			one.run(ctx, c)
			fmt.Println("passed", one.name)
		}
	}
}
