package main

// ndt7 v0.11 as m-lab's server speaks it: prepared messages that grow to 1 MiB one way, messages skipped
// without being unmasked the other way, and four times a second a count.

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/sys/unix"
)

const (
	ndt7Protocol = "net.measurementlab.ndt.v7"
	// A message begins with so many bytes, grows while it is less than a sixteenth of what was sent,
	// and stops here.
	ndt7MessageBytesMin = 1 << 13
	ndt7MessageBytesMax = 1 << 20
	// The largest message that is taken.
	ndt7ReadBytesMax = 1 << 24
	ndt7Time         = 10 * time.Second
	ndt7TellEvery    = 250 * time.Millisecond
)

var ndt7Upgrader = websocket.Upgrader{
	ReadBufferSize:  1 << 20,
	WriteBufferSize: 1 << 20,
	Subprotocols:    []string{ndt7Protocol},
	CheckOrigin:     func(*http.Request) bool { return true },
}

// Takes the connection over; nil: it has been refused.
func ndt7Open(w http.ResponseWriter, r *http.Request) *websocket.Conn {
	if r.Header.Get("Sec-WebSocket-Protocol") != ndt7Protocol {
		http.Error(w, "the subprotocol is "+ndt7Protocol, http.StatusBadRequest)
		return nil
	}
	conn, err := ndt7Upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil
	}
	conn.SetReadLimit(ndt7ReadBytesMax)
	conn.SetReadDeadline(time.Now().Add(ndt7Time + 5*time.Second))
	conn.SetWriteDeadline(time.Now().Add(ndt7Time + 5*time.Second))
	return conn
}

// What the kernel has received on the connection: messages that are skipped have no length here.
func ndt7Received(conn *websocket.Conn) int64 {
	inner := conn.NetConn()
	if tls, ok := inner.(interface{ NetConn() net.Conn }); ok {
		inner = tls.NetConn()
	}
	tcp, ok := inner.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	var received int64
	raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			received = int64(info.Bytes_received)
		}
	})
	return received
}

// A count for the client.
func ndt7Tell(conn *websocket.Conn, test string, began time.Time, bytes int64) error {
	passed := time.Since(began).Microseconds()
	text := fmt.Sprintf(`{"AppInfo":{"ElapsedTime":%d,"NumBytes":%d},"TCPInfo":{"ElapsedTime":%d,`+
		`"BytesReceived":%d},"Origin":"server","Test":"%s"}`,
		passed, bytes, passed, ndt7Received(conn), test)
	return conn.WriteMessage(websocket.TextMessage, []byte(text))
}

func ndt7Close(conn *websocket.Conn) {
	message := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "Done")
	conn.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second))
}

func ndt7Download(w http.ResponseWriter, r *http.Request) {
	conn := ndt7Open(w, r)
	if conn == nil {
		return
	}
	defer conn.Close()
	go func() {
		for {
			if _, _, err := conn.NextReader(); err != nil {
				return
			}
		}
	}()
	size := ndt7MessageBytesMin
	message, err := websocket.NewPreparedMessage(websocket.BinaryMessage, make([]byte, size))
	if err != nil {
		return
	}
	var sent int64
	began := time.Now()
	told := began
	for time.Since(began) < ndt7Time {
		if err := conn.WritePreparedMessage(message); err != nil {
			return
		}
		sent += int64(size)
		if now := time.Now(); now.Sub(told) >= ndt7TellEvery {
			told = now
			if ndt7Tell(conn, "download", began, sent) != nil {
				return
			}
		}
		if size < ndt7MessageBytesMax && int64(size) < sent/16 {
			size *= 2
			message, err = websocket.NewPreparedMessage(websocket.BinaryMessage, make([]byte, size))
			if err != nil {
				return
			}
		}
	}
	ndt7Close(conn)
}

func ndt7Upload(w http.ResponseWriter, r *http.Request) {
	conn := ndt7Open(w, r)
	if conn == nil {
		return
	}
	defer conn.Close()
	began := time.Now()
	told := began
	for time.Since(began) < ndt7Time {
		if _, _, err := conn.NextReader(); err != nil {
			return
		}
		if now := time.Now(); now.Sub(told) >= ndt7TellEvery {
			told = now
			if ndt7Tell(conn, "upload", began, ndt7Received(conn)) != nil {
				return
			}
		}
	}
	ndt7Close(conn)
}
