// The Go client of the interoperation tests: net/http and x/net/http2, with and without TLS, and quic-go.
//
//	go-client HTTP_URL HTTPS_URL
//	go-client serve CERTIFICATE KEY
//
// It prints one line "ok: WAY" for each way, and ends with 1 at the first mistake. With "serve" it is a server of HTTP/3.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
)

var sizes = []int{0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1 << 20, 8 << 20}

var insecure = &tls.Config{InsecureSkipVerify: true}

type way struct {
	name      string
	url       string
	major     int
	transport http.RoundTripper
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3])
		return
	}
	if len(os.Args) < 3 {
		fail("usage: go-client HTTP_URL HTTPS_URL, or go-client serve CERTIFICATE KEY")
	}
	for _, w := range ways(os.Args[1], os.Args[2]) {
		client := &http.Client{Transport: w.transport, Timeout: time.Minute}
		if err := check(client, w); err != nil {
			fail("%s: %v", w.name, err)
		}
		fmt.Printf("ok: %s\n", w.name)
	}
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(1)
}

func ways(plain, secure string) []way {
	only := func(set func(*http.Protocols)) *http.Transport {
		protocols := new(http.Protocols)
		set(protocols)
		return &http.Transport{Protocols: protocols, TLSClientConfig: insecure.Clone()}
	}
	dial := func(_ context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return net.Dial(network, address)
	}
	return []way{
		{"net/http h1", plain, 1, only(func(p *http.Protocols) { p.SetHTTP1(true) })},
		{"net/http h2c", plain, 2, only(func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) })},
		{"net/http tls h1", secure, 1, only(func(p *http.Protocols) { p.SetHTTP1(true) })},
		{"net/http tls h2", secure, 2, only(func(p *http.Protocols) { p.SetHTTP2(true) })},
		{"x/net/http2 h2c", plain, 2, &http2.Transport{AllowHTTP: true, DialTLSContext: dial}},
		{"x/net/http2 tls h2", secure, 2, &http2.Transport{TLSClientConfig: insecure.Clone()}},
		{"quic-go h3", secure, 3, &http3.Transport{TLSClientConfig: insecure.Clone()}},
	}
}

func check(client *http.Client, w way) error {
	if err := ping(client, w); err != nil {
		return err
	}
	for _, size := range sizes {
		content, _, err := do(client, "GET", fmt.Sprintf("%s/echo?size=%d", w.url, size), nil, w.major)
		if err != nil {
			return fmt.Errorf("GET %d: %w", size, err)
		}
		if !bytes.Equal(content, bytes.Repeat([]byte{'x'}, size)) {
			return fmt.Errorf("GET %d: wrong content of %d bytes", size, len(content))
		}
		for _, known := range []bool{true, false} {
			if err := echo(client, w, size, int64(size), known); err != nil {
				return fmt.Errorf("POST %d (length known: %v): %w", size, known, err)
			}
		}
	}
	return together(client, w)
}

func ping(client *http.Client, w way) error {
	content, response, err := do(client, "GET", w.url+"/ping", nil, w.major)
	if err != nil {
		return err
	}
	if string(content) != "pong" || response.StatusCode != 200 {
		return fmt.Errorf("ping: %d %q", response.StatusCode, content)
	}
	content, response, err = do(client, "HEAD", w.url+"/ping", nil, w.major)
	if err != nil {
		return err
	}
	if len(content) != 0 || response.ContentLength != 4 {
		return fmt.Errorf("HEAD: length %d, content %q", response.ContentLength, content)
	}
	_, response, err = do(client, "GET", w.url+"/no/such/path", nil, w.major)
	if err != nil {
		return err
	}
	if response.StatusCode != 404 {
		return fmt.Errorf("unknown path: %d", response.StatusCode)
	}
	return nil
}

// together asks a hundred times at once.
func together(client *http.Client, w way) error {
	var all sync.WaitGroup
	mistakes := make(chan error, 100)
	for index := range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := echo(client, w, 1000*index, int64(index), index%2 == 0); err != nil {
				mistakes <- fmt.Errorf("request %d of a hundred: %w", index, err)
			}
		}()
	}
	all.Wait()
	close(mistakes)
	return <-mistakes
}

// echo posts random bytes and compares their hash with that of what comes back.
func echo(client *http.Client, w way, size int, seed int64, known bool) error {
	sent := make([]byte, size)
	rand.New(rand.NewSource(seed)).Read(sent)
	var body io.Reader = bytes.NewReader(sent)
	if !known {
		body = struct{ io.Reader }{body}
	}
	got, response, err := do(client, "POST", w.url+"/echo", body, w.major)
	if err != nil {
		return err
	}
	if response.StatusCode != 200 || sha256.Sum256(got) != sha256.Sum256(sent) {
		return fmt.Errorf("status %d, %d bytes of %d", response.StatusCode, len(got), size)
	}
	return nil
}

func do(client *http.Client, method, url string, body io.Reader, major int) ([]byte, *http.Response, error) {
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return nil, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil, err
	}
	if response.ProtoMajor != major {
		return nil, nil, fmt.Errorf("answered by %s", response.Proto)
	}
	return content, response, nil
}
