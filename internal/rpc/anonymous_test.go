package rpc

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// readToEnd reads a connection to its end.
func readToEnd(conn net.Conn) (n int, err error) {
	buf := make([]byte, 4096)
	for err == nil {
		var m int
		m, err = conn.Read(buf)
		n += m
	}
	return n, err
}

// TestAnonymousPass checks that an anonymous client can be connected only briefly and
// send only little. It must lock no other client out.
func TestAnonymousPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s anonymousConns
		var ours, theirs []net.Conn
		enter := func() {
			a, b := net.Pipe()
			ours, theirs = append(ours, s.add(a)), append(theirs, b)
		}
		for range maxAnonymous + 3 {
			enter()
		}
		for i, conn := range theirs {
			conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err := conn.Read(make([]byte, 1))
			if gone := errors.Is(err, io.EOF); gone != (i < 3) {
				t.Errorf("number %d: %v", i, err)
			}
		}
		go theirs[10].Write(make([]byte, 2*anonymousBytes))
		if n, err := readToEnd(ours[10]); n != anonymousBytes || err != errAnonymousLimit {
			t.Errorf("one could say %d bytes: %v", n, err)
		}
		theirs[10].Close()
		began := time.Now()
		if _, err := readToEnd(ours[20]); err == nil || time.Since(began) > anonymousTimeout {
			t.Errorf("one stayed for %v: %v", time.Since(began), err)
		}
		synctest.Wait()
		if len(s.conns) > 0 {
			t.Errorf("%d are left", len(s.conns))
		}
	})
}
