// Echoes what it is sent: over HTTP/1.1, h2c, and TLS with both. Its arguments are a key and a certificate; it
// prints the three ports and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func echo(response http.ResponseWriter, request *http.Request) {
	response.Header().Set("X-Version", fmt.Sprint(request.ProtoMajor))
	if request.Method == http.MethodPost {
		// Over HTTP/1.1, it would read nothing more once it answers.
		http.NewResponseController(response).EnableFullDuplex()
		io.Copy(response, request.Body)
		return
	}
	fmt.Fprintf(response, "hello from %d for %s", request.ProtoMajor, request.Header.Get("X-Forwarded-For"))
}

func listen() net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
	plain, clear, secure := listen(), listen(), listen()
	go server(true, false, false).Serve(plain)
	go server(false, false, true).Serve(clear)
	go server(true, true, false).ServeTLS(secure, os.Args[2], os.Args[1])
	port := func(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
	fmt.Println(port(plain), port(clear), port(secure))
	io.Copy(io.Discard, os.Stdin)
}
