package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/quic-go/quic-go/http3"
)

// serve is the server of quic-go: GET gives "pong", POST echoes. It prints "port: N" and ends with its standard input.
func serve(certificate, key string) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		fail("%v", err)
	}
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		fail("%v", err)
	}
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodGet {
			io.WriteString(response, "pong")
			return
		}
		io.Copy(response, request.Body)
	})
	settings := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
	server := &http3.Server{Handler: handler, TLSConfig: settings}
	go func() { fail("%v", server.Serve(socket)) }()
	fmt.Printf("port: %d\n", socket.LocalAddr().(*net.UDPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}
