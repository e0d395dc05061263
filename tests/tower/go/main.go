// Runs the interoperability cases of grpc-go, as that project asserts them, against a server.
//
//	interop ADDRESS [CASE]...
//
// Without a case it runs all. A case that fails ends the program with status 1.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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
}

func fail(what ...any) {
	fmt.Fprintln(os.Stderr, what...)
	os.Exit(1)
}

func main() {
	if len(os.Args) < 2 {
		fail("the server's address is missing")
	}
	connection, err := grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fail(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	wanted := map[string]bool{}
	for _, name := range os.Args[2:] {
		wanted[name] = true
	}
	c := client{connection, pb.NewTestServiceClient(connection)}
	for _, one := range cases {
		if len(wanted) == 0 || wanted[one.name] {
			one.run(ctx, c)
			fmt.Println("passed", one.name)
		}
	}
}
