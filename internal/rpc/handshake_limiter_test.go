package rpc

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestHandshakeLimiter opens more connections than may be at once. The last one waits
// until another has given its slot up, or until its own time is over.
func TestHandshakeLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l handshakeLimiter
		open := func(context.Context) (net.Conn, error) {
			conn, other := net.Pipe()
			other.Close()
			return conn, nil
		}
		var last net.Conn
		for range maxClientHandshakes {
			var err error
			if last, err = l.dial(t.Context(), open); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.dial(short, open); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one connection too many: %v", err)
		}
		began, opened := time.Now(), make(chan error)
		go func() {
			_, err := l.dial(t.Context(), open)
			opened <- err
		}()
		time.Sleep(time.Minute)
		last.Close()
		last.Close() // once more: it has one slot
		if err := <-opened; err != nil || time.Since(began) != time.Minute {
			t.Errorf("opened after %v, %v", time.Since(began), err)
		}
		if _, err := l.dial(short, open); err == nil {
			t.Error("a connection that was closed twice has given two slots up")
		}
	})
}

// TestSlotsOfSilentNodes opens a connection while as many nodes as may be do not answer.
func TestSlotsOfSilentNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l handshakeLimiter
		failed := make(chan error, maxClientHandshakes)
		for range maxClientHandshakes {
			go func() {
				_, err := l.dial(t.Context(), func(ctx context.Context) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
				failed <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		slow := func(context.Context) (net.Conn, error) { // gets its slot back
			time.Sleep(time.Second)
			conn, _ := net.Pipe()
			return conn, nil
		}
		conn, err := l.dial(t.Context(), slow)
		if took := time.Since(began); err != nil || took != slotDialTime+time.Second {
			t.Errorf("opened after %v, %v", took, err)
		}
		conn.Close()
		for range maxClientHandshakes {
			if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a silent node: %v", err)
			}
		}
		if took := time.Since(began); took != handshakeTimeout {
			t.Errorf("silent nodes were given up after %v", took)
		}
		for range maxClientHandshakes { // all slots are free
			if _, err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
