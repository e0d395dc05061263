// Echoes what it is sent: over HTTP/1.1, h2c, and TLS with both. Its arguments are a key and a certificate; it
// prints the three ports and ends with its standard input. Asked to switch protocols, which HTTP/2 has no way to
// do here, it echoes what follows. /events is a stream of three events, one for each time that it is asked for.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
)

func echo(response http.ResponseWriter, request *http.Request) {
	response.Header().Set("X-Version", fmt.Sprint(request.ProtoMajor))
	if protocol := request.Header.Get("Upgrade"); protocol != "" && request.ProtoMajor == 1 {
		connection, buffered, err := http.NewResponseController(response).Hijack()
		if err != nil {
			panic(err)
		}
		defer connection.Close()
		fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
		io.Copy(connection, buffered)
		return
	}
	if request.URL.Path == "/events" {
		events(response, request.Header.Get("Last-Event-ID"))
		return
	}
	switch request.URL.Path {
	case "/hinted":
		response.Header().Set("Link", "</style>; rel=preload")
		response.WriteHeader(http.StatusEarlyHints)
		response.Header().Del("Link")
		return
	case "/told":
		told(response, request)
		return
	}
	if request.Method == http.MethodPost {
		// Over HTTP/1.1, it would read nothing more once it answers.
		http.NewResponseController(response).EnableFullDuplex()
		io.Copy(response, request.Body)
		return
	}
	fmt.Fprintf(response, "hello from %d for %s", request.ProtoMajor, request.Header.Get("X-Forwarded-For"))
}

func events(response http.ResponseWriter, last string) {
	after, _ := strconv.Atoi(last)
	if after == 3 {
		response.WriteHeader(http.StatusNoContent)
		return
	}
	response.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(response, "retry: 1\nid: %d\ndata: event %d\n\n", after+1, after+1)
}

// told reads the body, and says in trailers what it was and which trailer came with it.
func told(response http.ResponseWriter, request *http.Request) {
	response.Header().Set("Trailer", "X-Sum, X-Came")
	sum := sha256.New()
	if _, err := io.Copy(sum, request.Body); err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprint(response, "read")
	// Otherwise it gets a length, with which HTTP/1.1 has no trailers.
	http.NewResponseController(response).Flush()
	response.Header().Set("X-Sum", hex.EncodeToString(sum.Sum(nil)))
	response.Header().Set("X-Came", request.Trailer.Get("X-Sent"))
}

func listen(network, address string) net.Listener {
	listener, err := net.Listen(network, address)
	if err != nil {
		panic(err)
	}
	return listener
}

func server(h1, h2, h2c bool) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(h1)
	protocols.SetHTTP2(h2)
	protocols.SetUnencryptedHTTP2(h2c)
	return &http.Server{Handler: http.HandlerFunc(echo), Protocols: protocols}
}

func main() {
	any := "127.0.0.1:0"
	plain, clear, secure := listen("tcp", any), listen("tcp", any), listen("tcp", any)
	go server(true, false, false).Serve(plain)
	go server(true, false, false).Serve(listen("unix", os.Args[3]))
	go server(false, false, true).Serve(clear)
	go server(true, true, false).ServeTLS(secure, os.Args[2], os.Args[1])
	port := func(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
	fmt.Println(port(plain), port(clear), port(secure))
	io.Copy(io.Discard, os.Stdin)
}
