package rpc_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestEveryMethodHasASize compares the table of sizes with the access table, which
// another test compares with the services.
func TestEveryMethodHasASize(t *testing.T) {
	sizes := rpc.MessageSizes()
	for method := range peer.MethodAccess() {
		if sizes[method] <= 0 {
			t.Errorf("%s: how long may a message be?", method)
		}
	}
	for method := range sizes {
		if _, ours := peer.MethodAccess()[method]; !ours {
			t.Errorf("%s: there is no such method", method)
		}
	}
}

// busyCollector is a collector whose calls last.
type busyCollector struct {
	wire.UnimplementedCollectorServer
	ended chan error
}

// Query sends for ever.
func (b *busyCollector) Query(q *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	for {
		if err := stream.Send(&wire.AdText{Ad: strings.Repeat("x", 1<<16)}); err != nil {
			b.ended <- err
			return err
		}
	}
}

// Advertise receives until its peer closes the stream.
func (b *busyCollector) Advertise(stream grpc.BidiStreamingServer[wire.AdUpdate, wire.AdAck]) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// startBusyCollector starts a busy collector in a bubble. It returns how to connect to it
// and an identity that may call it.
func startBusyCollector(t *testing.T,
	b *busyCollector) (open func(context.Context, string) (net.Conn, error), id *rpc.Identity) {
	t.Helper()
	a, err := pki.NewAuthority("lab", pki.AuthorityValidity)
	if err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 16)
	s := rpc.NewServer(loadIdentity(t, writeNodeFiles(t, a, "central", peer.Collector, time.Hour)), peer.MethodAccess())
	wire.RegisterCollectorServer(s, b)
	go s.Serve(l)
	t.Cleanup(func() { s.Stop(); l.Close() })
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return l.DialContext(ctx)
	}, loadIdentity(t, writeNodeFiles(t, a, "n1", peer.Startd, time.Hour))
}

func dialCollector(t *testing.T, open func(context.Context, string) (net.Conn, error),
	id *rpc.Identity) wire.CollectorClient {
	t.Helper()
	conn, err := rpc.DialTransport("central", id, peer.Collector, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return wire.NewCollectorClient(conn)
}

func TestLongMessageIsNotParsed(t *testing.T) {
	log := listen(t)
	dir := t.TempDir()
	addr, _ := startServer(t, "unix:"+dir+"/x.sock", nil)
	conn := dial(t, addr, nil, peer.Schedd)
	req := &wire.HealthRequest{}
	// an unknown field of 128 KiB
	req.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x07, 0x80, 0x80, 0x08}, make([]byte, 1<<17)...))
	_, err := wire.NewScheddClient(conn).Health(t.Context(), req)
	if err == nil || !strings.Contains(err.Error(), "65536 is the most") {
		t.Errorf("got %v", err)
	}
	if !log.contains("refused a message that is too long") {
		t.Errorf("the log: %s", &log.text)
	}
}

func TestSlowReaderCutOff(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		b := &busyCollector{ended: make(chan error, 1)}
		open, id := startBusyCollector(t, b)
		stream, err := dialCollector(t, open, id).Query(t.Context(), &wire.AdQuery{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		<-b.ended // its messages are not read
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("after %v", took)
		}
		for err == nil {
			_, err = stream.Recv() // what was in flight
		}
		if !errors.Is(rpc.FromStatus(err), roost.Unavailable) || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("got %v", err)
		}
		if !log.contains("ended a call of /roost.wire.Collector/Query") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

func TestActiveReaderNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, id := startBusyCollector(t, &busyCollector{ended: make(chan error, 1)})
		stream, err := dialCollector(t, open, id).Query(t.Context(), &wire.AdQuery{})
		if err != nil {
			t.Fatal(err)
		}
		for range 300 {
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestConcurrentCallsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open, id := startBusyCollector(t, &busyCollector{})
		clients := []wire.CollectorClient{dialCollector(t, open, id), dialCollector(t, open, id)}
		ctx, cancel := context.WithCancel(t.Context())
		var last grpc.BidiStreamingClient[wire.AdUpdate, wire.AdAck]
		for i := range rpc.MaxCallsPerPeer + 1 {
			var err error
			if last, err = clients[i%2].Advertise(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if _, err := last.Recv(); !errors.Is(rpc.FromStatus(err), roost.Exhausted) ||
			!strings.Contains(err.Error(), "n1 has 1024 calls under way") {
			t.Errorf("one too many: got %v", err)
		}
		cancel()
		synctest.Wait()
		stream, err := clients[0].Advertise(t.Context())
		if err == nil {
			stream.CloseSend()
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("when the others have ended: got %v", err)
		}
	})
}

// headersFrame returns an HTTP/2 HEADERS frame that opens a call. It has literals without
// an index and without Huffman's code (RFC 9113, RFC 7541).
func headersFrame(stream uint32, method string) []byte {
	var block []byte
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "roost"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		block = append(block, 0, byte(len(h[0])))
		block = append(append(block, h[0]...), byte(len(h[1])))
		block = append(block, h[1]...)
	}
	return http2Frame(1, 4, stream, block)
}

func http2Frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	return append(binary.BigEndian.AppendUint32([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}, stream),
		payload...)
}

// TestRequestThatDoesNotArriveIsGivenUp writes a request as slowly as HTTP/2 allows: the
// header, and a part of the message.
func TestRequestThatDoesNotArriveIsGivenUp(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		open, id := startBusyCollector(t, &busyCollector{})
		raw, err := open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		conn := tls.Client(raw, id.TLS())
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		text := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), http2Frame(4, 0, 0, nil)...)
		text = append(text, headersFrame(1, "/roost.wire.Collector/Query")...)
		if _, err := conn.Write(append(text, http2Frame(0, 0, 1, []byte{0, 0, 0, 1, 0, 'x'})...)); err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, conn)
		time.Sleep(25 * time.Second)
		if log.contains("ended a call") {
			t.Errorf("too early: %s", &log.text)
		}
		time.Sleep(10 * time.Second)
		if !log.contains("its request did not arrive") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}

// TestLongMessageIsNotRead sends a message longer than any may be. It is refused before
// it is read, with the same text as one refused before it is parsed.
func TestLongMessageIsNotRead(t *testing.T) {
	log := listen(t)
	synctest.Test(t, func(t *testing.T) {
		open, id := startBusyCollector(t, &busyCollector{})
		stream, err := dialCollector(t, open, id).Advertise(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stream.Send(&wire.AdUpdate{Ad: strings.Repeat("x", 5<<20)}) // Recv returns its error
		if _, err = stream.Recv(); !errors.Is(rpc.FromStatus(err), roost.Exhausted) ||
			!strings.Contains(rpc.FromStatus(err).Error(), "4194304 is the most") {
			t.Errorf("got %v", err)
		}
		if !log.contains("refused a message that is too long") {
			t.Errorf("the log: %s", &log.text)
		}
	})
}
