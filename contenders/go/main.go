// Go as a contender: net/http for HTTP/1.1, golang.org/x/net/http2 for h2c, crypto/tls for both, quic-go for
// HTTP/3 on the port with TLS, and ndt7 on gorilla/websocket.
//
//	go-contender [-host ADDRESS] -port PORT -tls-port PORT -cert FILE -key FILE -www DIRECTORY [-workers COUNT]
//
// One cleartext port is enough: h2c.NewHandler looks at the first line of a connection, and for a
// request of HTTP/1.1 at two fields, which costs less than can be measured here.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// The largest size of GET /echo, in bytes.
const echoBytesMax = 1 << 30

var fill = bytes.Repeat([]byte{'x'}, 64<<10)

func ping(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "pong")
}

func get(w http.ResponseWriter, r *http.Request) {
	size := int64(64)
	if text := r.URL.Query().Get("size"); text != "" {
		var err error
		size, err = strconv.ParseInt(text, 10, 64)
		if err != nil || size < 0 || size > echoBytesMax {
			http.Error(w, "size is no number, or too large", http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	for size > 0 {
		piece := fill[:min(size, int64(len(fill)))]
		if _, err := w.Write(piece); err != nil {
			return
		}
		size -= int64(len(piece))
	}
}

// n events, gap milliseconds apart, of size bytes each.
func events(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int {
		number, err := strconv.Atoi(r.URL.Query().Get(name))
		if err != nil || number < 0 || number > 1<<20 {
			return 0
		}
		return number
	}
	n, gap, data := number("n"), time.Duration(number("gap"))*time.Millisecond, bytes.Repeat([]byte{'x'}, number("size"))
	w.Header().Set("Content-Type", "text/event-stream")
	began, controller := time.Now(), http.NewResponseController(w)
	for event := range n {
		time.Sleep(time.Until(began.Add(time.Duration(event) * gap)))
		if _, err := fmt.Fprintf(w, "id: %d\ndata: %s\n\n", event, data); err != nil {
			return
		}
		if err := controller.Flush(); err != nil {
			return
		}
	}
}

// What a bulk transfer writes and reads at once.
const bulkBytes = 1 << 20

var zeros = make([]byte, bulkBytes)

func bulk(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.ParseInt(r.PathValue("size"), 10, 64)
	if err != nil || size < 0 {
		http.Error(w, "size is no number", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	for size > 0 {
		piece := zeros[:min(size, bulkBytes)]
		if _, err := w.Write(piece); err != nil {
			return
		}
		size -= int64(len(piece))
	}
}

// Only to discard: without it io.Copy would read 8 KiB at once.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func put(w http.ResponseWriter, r *http.Request) {
	if _, err := io.CopyBuffer(discard{}, r.Body, make([]byte, bulkBytes)); err != nil {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusNoContent)
}

// The body goes back as it comes.
func post(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	if r.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	if r.ProtoMajor == 1 {
		// Otherwise net/http stops reading the body once the response has begun.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if _, err := io.Copy(w, r.Body); err != nil {
		// The client is gone, or its body is broken: the response must not look whole.
		panic(http.ErrAbortHandler)
	}
}

// The settings that all contenders get that can be told: 256 streams, 1 MiB for a stream and
// 16 MiB for a connection.
func settings() *http2.Server {
	return &http2.Server{
		MaxConcurrentStreams:         256,
		MaxUploadBufferPerStream:     1 << 20,
		MaxUploadBufferPerConnection: 16 << 20,
	}
}

func main() {
	host := flag.String("host", "127.0.0.1", "the address to listen on")
	port := flag.String("port", "", "the cleartext port")
	tlsPort := flag.String("tls-port", "", "the port with TLS")
	cert := flag.String("cert", "", "the certificate chain, in PEM")
	key := flag.String("key", "", "its private key, in PEM")
	www := flag.String("www", ".", "the directory of the static files")
	workers := flag.Int("workers", 1, "how many cores to use")
	flag.Parse()
	runtime.GOMAXPROCS(*workers)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", ping)
	mux.HandleFunc("GET /echo", get)
	mux.HandleFunc("POST /echo", post)
	mux.HandleFunc("GET /events", events)
	mux.HandleFunc("GET /bulk/{size}", bulk)
	mux.HandleFunc("PUT /bulk/{size}", put)
	mux.HandleFunc("GET /ndt/v7/download", ndt7Download)
	mux.HandleFunc("GET /ndt/v7/upload", ndt7Upload)
	mux.Handle("GET /", http.FileServer(http.Dir(*www)))

	clear := &http.Server{Addr: *host + ":" + *port, Handler: h2c.NewHandler(mux, settings())}
	secure := &http.Server{Addr: *host + ":" + *tlsPort, Handler: mux}
	if err := http2.ConfigureServer(secure, settings()); err != nil {
		log.Fatal(err)
	}
	third := &http3.Server{
		Addr:    *host + ":" + *tlsPort,
		Handler: mux,
		QUICConfig: &quic.Config{
			MaxIncomingStreams:             256,
			InitialStreamReceiveWindow:     1 << 20,
			InitialConnectionReceiveWindow: 16 << 20,
			MaxConnectionReceiveWindow:     16 << 20,
			MaxIdleTimeout:                 10 * time.Minute,
		},
	}
	failed := make(chan error)
	go func() { failed <- clear.ListenAndServe() }()
	go func() { failed <- secure.ListenAndServeTLS(*cert, *key) }()
	go func() { failed <- third.ListenAndServeTLS(*cert, *key) }()
	log.Fatal(<-failed)
}
