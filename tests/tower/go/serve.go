package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// serve runs grpc-go's server of the cases, without TLS and with it.
func serve() {
	ports := []any{start(), start(grpc.Creds(credentials.NewServerTLSFromCert(certificate())))}
	fmt.Println(ports...)
	io.Copy(io.Discard, os.Stdin)
}

// start gives the port on which a server listens.
func start(options ...grpc.ServerOption) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	server := grpc.NewServer(options...)
	pb.RegisterTestServiceServer(server, interop.NewTestServer())
	go server.Serve(listener)
	return listener.Addr().(*net.TCPAddr).Port
}

// certificate makes one that names nobody.
func certificate() *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		fail(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	made, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		fail(err)
	}
	return &tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}
