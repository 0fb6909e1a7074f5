package rpc_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// testSchedd answers as the name in the request says.
type testSchedd struct {
	wire.UnimplementedScheddServer
	ended chan error // of calls that wait for their end
}

func (s *testSchedd) Submit(_ context.Context, req *wire.SubmitRequest) (*wire.SubmitReply, error) {
	sizes := fmt.Sprint(len(req.GetJobs()), len(req.GetJobs()[0].GetAd()))
	return &wire.SubmitReply{Ids: []string{req.GetKey(), sizes}}, nil
}

func (s *testSchedd) SubmitParts(from grpc.ClientStreamingServer[wire.SubmitPart, wire.SubmitReply]) error {
	parts, size := 0, 0
	for {
		part, err := from.Recv()
		if err == io.EOF {
			return from.SendAndClose(&wire.SubmitReply{Ids: []string{fmt.Sprint(parts, size)}})
		}
		if err != nil {
			return err
		}
		if part.GetSize() > 0 {
			return rpc.Status(fmt.Errorf("parts: %w", roost.Exhausted))
		}
		parts, size = parts+1, size+len(part.GetData())
	}
}

func (s *testSchedd) Why(ctx context.Context, req *wire.WhyRequest) (*wire.WhyReply, error) {
	switch what := req.GetId(); what {
	case "hang":
		<-ctx.Done()
		s.ended <- ctx.Err()
		return nil, ctx.Err()
	case "long":
		return &wire.WhyReply{Summary: strings.Repeat("x", 5<<20)}, nil
	case "plain":
		return nil, errors.New("it is so: 100 % ü\nand so")
	default:
		return nil, rpc.Status(fmt.Errorf("job %s: %w: %s", what, roost.NotFound, strings.Repeat("long ", 5000)))
	}
}

func (s *testSchedd) Query(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.JobStatus]) error {
	for i := range req.GetLimit() {
		if err := stream.Send(&wire.JobStatus{Id: fmt.Sprint(i), Ad: strings.Repeat("a", 1000)}); err != nil {
			s.ended <- err
			return err
		}
	}
	switch {
	case req.GetHistory():
		return rpc.Status(fmt.Errorf("history: %w", roost.Unavailable))
	case req.GetTasks():
		<-stream.Context().Done()
		s.ended <- stream.Context().Err()
	}
	return nil
}

// serveTest serves s on a socket until the test or the returned function ends it.
func serveTest(t *testing.T, s *testSchedd, addr string, opts ...grpc.ServerOption) (stop func()) {
	t.Helper()
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(nil, peer.MethodAccess(), opts...)
	wire.RegisterScheddServer(server, s)
	go server.Serve(l)
	stop = sync.OnceFunc(server.Stop)
	t.Cleanup(stop)
	return stop
}

func socketAddr(t *testing.T) string { return "unix:" + filepath.Join(t.TempDir(), "s.sock") }

// clients are a LocalConn and a connection of gRPC, which must not differ.
func clients(t *testing.T, addr string) map[string]wire.ScheddClient {
	t.Helper()
	local, err := rpc.DialLocal(addr)
	if err != nil {
		t.Fatal(err)
	}
	full, err := rpc.Dial(addr, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close(); full.Close() })
	return map[string]wire.ScheddClient{"local": wire.NewScheddClient(local), "gRPC": wire.NewScheddClient(full)}
}

// queryAll reads all replies of a query.
func queryAll(ctx context.Context, c wire.ScheddClient, req *wire.QueryRequest) (n int, err error) {
	stream, err := c.Query(ctx, req)
	if err != nil {
		return 0, err
	}
	for ; ; n++ {
		m, err := stream.Recv()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if m.GetId() != fmt.Sprint(n) || len(m.GetAd()) != 1000 {
			return n, fmt.Errorf("reply %d is %.50v", n, m)
		}
	}
}

// longPart is a part that is longer than the window of a new stream.
var longPart = []*wire.SubmitPart{{Data: bytes.Repeat([]byte("x"), 1<<20)}}

// submitParts sends parts until the server has ended the call.
func submitParts(ctx context.Context, c wire.ScheddClient, parts []*wire.SubmitPart) (string, error) {
	stream, err := c.SubmitParts(ctx)
	if err != nil {
		return "", err
	}
	for _, part := range parts {
		if err := stream.Send(part); err == io.EOF {
			break
		} else if err != nil {
			return "", err
		}
	}
	reply, err := stream.CloseAndRecv()
	return fmt.Sprint(reply.GetIds()), err
}

// TestLocalConnIsLikeGRPC compares a LocalConn with a connection of gRPC. Replies and
// errors are the same, over new sockets and over a reused one.
func TestLocalConnIsLikeGRPC(t *testing.T) {
	addr := socketAddr(t)
	serveTest(t, &testSchedd{ended: make(chan error, 10)}, addr)
	calls := []func(ctx context.Context, c wire.ScheddClient) (string, error){
		func(ctx context.Context, c wire.ScheddClient) (string, error) {
			r, err := c.Submit(ctx, &wire.SubmitRequest{Key: "k", Jobs: []*wire.JobSpec{{Ad: "[A = 1]"}}})
			return fmt.Sprint(r.GetIds()), err
		},
		func(ctx context.Context, c wire.ScheddClient) (string, error) { // longer than all windows
			r, err := c.Submit(ctx, &wire.SubmitRequest{Key: "k",
				Jobs: []*wire.JobSpec{{Ad: strings.Repeat("x", 3<<20)}}})
			return fmt.Sprint(r.GetIds()), err
		},
		func(ctx context.Context, c wire.ScheddClient) (string, error) { // longer than the server accepts
			r, err := c.Submit(ctx, &wire.SubmitRequest{Key: "k",
				Jobs: []*wire.JobSpec{{Ad: strings.Repeat("x", 5<<20)}}})
			return fmt.Sprint(r.GetIds()), err
		},
	}
	for _, id := range []string{"long", "plain", "other"} {
		calls = append(calls, func(ctx context.Context, c wire.ScheddClient) (string, error) {
			r, err := c.Why(ctx, &wire.WhyRequest{Id: id})
			return r.GetSummary(), err
		})
	}
	calls = append(calls, func(ctx context.Context, c wire.ScheddClient) (string, error) {
		r, err := c.Health(ctx, &wire.HealthRequest{})
		return fmt.Sprint(r), err // not implemented
	})
	for _, parts := range [][]*wire.SubmitPart{{{Data: []byte("x")}}, {{Size: 1}}, slices.Repeat(longPart, 5),
		append(slices.Repeat(longPart, 2), &wire.SubmitPart{Size: 1})} {
		calls = append(calls, func(ctx context.Context, c wire.ScheddClient) (string, error) {
			return submitParts(ctx, c, parts)
		})
	}
	for _, req := range []*wire.QueryRequest{{}, {Limit: 3}, {Limit: 4000}, {Limit: 3, History: true}} {
		calls = append(calls, func(ctx context.Context, c wire.ScheddClient) (string, error) {
			n, err := queryAll(ctx, c, req)
			return fmt.Sprint(n), err
		})
	}
	both := clients(t, addr)
	for range 2 {
		for i, call := range calls {
			got, gerr := call(t.Context(), both["local"])
			want, werr := call(t.Context(), both["gRPC"])
			if got != want || fmt.Sprint(gerr) != fmt.Sprint(werr) ||
				rpc.KindOf(rpc.FromStatus(gerr)) != rpc.KindOf(rpc.FromStatus(werr)) {
				t.Errorf("call %d: got %.80s, %.200v, want %.80s, %.200v", i, got, gerr, want, werr)
			}
		}
	}
}

// TestLocalConnEnds checks that the end of a context ends a call here and at the server.
func TestLocalConnEnds(t *testing.T) {
	addr := socketAddr(t)
	s := &testSchedd{ended: make(chan error, 10)}
	serveTest(t, s, addr)
	for name, c := range clients(t, addr) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := c.Why(ctx, &wire.WhyRequest{Id: "hang"})
		if got := rpc.FromStatus(err); rpc.KindOf(got) != roost.Unavailable {
			t.Errorf("%s: a deadline: got %v", name, got)
		}
		<-s.ended
		cancel()
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := c.Why(ctx, &wire.WhyRequest{Id: "hang"}); !errors.Is(rpc.FromStatus(err), context.Canceled) {
			t.Errorf("%s: cancelled: got %v", name, err)
		}
		<-s.ended
		ctx, cancel = context.WithCancel(t.Context())
		stream, err := c.Query(ctx, &wire.QueryRequest{Limit: 2, Tasks: true})
		for range 2 {
			if err == nil {
				_, err = stream.Recv()
			}
		}
		if err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := stream.Recv(); !errors.Is(rpc.FromStatus(err), context.Canceled) {
			t.Errorf("%s: a cancelled stream: got %v", name, err)
		}
		<-s.ended
		if _, err := c.Why(ctx, &wire.WhyRequest{Id: "plain"}); !errors.Is(rpc.FromStatus(err), context.Canceled) {
			t.Errorf("%s: a call after the end: got %v", name, err)
		}
	}
}

// TestLocalConnFailures compares the errors of connections that fail.
func TestLocalConnFailures(t *testing.T) {
	missing := socketAddr(t)
	mute := socketAddr(t)
	l, err := rpc.Listen(mute, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.ReadFull(conn, make([]byte, 24))
			conn.Close()
		}
	}()
	for _, addr := range []string{missing, mute} {
		errs := map[string]string{}
		for name, c := range clients(t, addr) {
			_, err := c.Why(t.Context(), &wire.WhyRequest{Id: "plain"})
			err = rpc.FromStatus(err)
			// what is written to a socket that the other end has closed is a broken pipe
			broken := strings.Contains(err.Error(), "broken pipe")
			if rpc.KindOf(err) != roost.Unavailable || !strings.Contains(err.Error(), "connection error: ") && !broken {
				t.Errorf("%s: got %v", name, err)
			}
			if errs[name] = err.Error(); broken || strings.Contains(errs[name], "connection reset by peer") {
				errs[name] = "error reading server preface: EOF" // the request was not read
			}
		}
		if got, want := errs["local"], errs["gRPC"]; !strings.HasSuffix(got, want) && !strings.Contains(got, "EOF") {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := rpc.DialLocal("10.0.0.1:1"); !errors.Is(err, roost.Invalid) {
		t.Errorf("an address of the network: got %v", err)
	}
}

// TestLocalConnRestart checks that a call after a restart of the daemon takes a new
// socket. Calls after Close fail.
func TestLocalConnRestart(t *testing.T) {
	addr := socketAddr(t)
	local, err := rpc.DialLocal(addr)
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewScheddClient(local)
	for range 3 {
		stop := serveTest(t, &testSchedd{}, addr)
		for range 3 {
			if n, err := queryAll(t.Context(), c, &wire.QueryRequest{Limit: 2}); n != 2 || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		stop()
	}
	local.Close()
	if n, err := queryAll(t.Context(), c, &wire.QueryRequest{Limit: 2}); err == nil {
		t.Errorf("after Close: got %d", n)
	}
}

// TestLocalConnSlowReader checks that a caller who takes no replies holds the server up,
// and that its socket answers pings meanwhile. The server here waits for each.
func TestLocalConnSlowReader(t *testing.T) {
	addr := socketAddr(t)
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pinged, served := make(chan struct{}), make(chan error, 1)
	go func() { served <- serveSlowly(l, pinged) }()
	stream, err := clients(t, addr)["local"].Query(t.Context(), &wire.QueryRequest{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-pinged:
	case err := <-served:
		t.Fatal(err)
	}
	for range 64 * 2 {
		if m, err := stream.Recv(); err != nil || len(m.GetAd()) != slowAd {
			t.Fatalf("got %.50v, %v", m, err)
		}
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

const slowAd = 16384 - 5 - 3 // bytes, which make a full frame

// serveSlowly answers one call with as much as the caller accepts. When that was taken it
// sends as much again.
func serveSlowly(l net.Listener, pinged chan<- struct{}) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	f.WriteSettings()
	await := func(is func(http2.Frame) bool) error {
		for {
			frame, err := f.ReadFrame()
			if err != nil || is(frame) {
				return err
			}
		}
	}
	if err := await(func(f http2.Frame) bool {
		d, ok := f.(*http2.DataFrame)
		return ok && d.StreamEnded()
	}); err != nil {
		return err
	}
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	writeHeaders := func(name, value string, end bool) {
		block.Reset()
		fields.WriteField(hpack.HeaderField{Name: name, Value: value})
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true,
			EndStream: end})
	}
	writeHeaders(":status", "200", false)
	message, err := proto.Marshal(&wire.JobStatus{Ad: strings.Repeat("x", slowAd)})
	if err != nil {
		return err
	}
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	writeMessages := func() {
		for range 64 {
			f.WriteData(1, false, framed)
		}
	}
	if len(framed)*64 != 1<<20 {
		return fmt.Errorf("a message has %d bytes", len(framed))
	}
	writeMessages()
	f.WritePing(false, [8]byte{1})
	var early error
	if err := await(func(f http2.Frame) bool {
		if w, ok := f.(*http2.WindowUpdateFrame); ok {
			early = fmt.Errorf("stream %d: %d bytes more are accepted, and none were taken", w.StreamID, w.Increment)
		}
		p, ok := f.(*http2.PingFrame)
		return ok && p.IsAck()
	}); err != nil || early != nil {
		return cmp.Or(err, early)
	}
	close(pinged)
	taken := map[uint32]uint32{}
	if err := await(func(f http2.Frame) bool {
		if w, ok := f.(*http2.WindowUpdateFrame); ok {
			taken[w.StreamID] += w.Increment
		}
		return taken[0] >= 3<<18 && taken[1] >= 3<<18
	}); err != nil {
		return err
	}
	go io.Copy(io.Discard, conn)
	writeMessages()
	writeHeaders("grpc-status", "0", true)
	return nil
}

// TestLocalConnConcurrent makes many calls at once over one LocalConn.
func TestLocalConnConcurrent(t *testing.T) {
	addr := socketAddr(t)
	serveTest(t, &testSchedd{}, addr)
	c := clients(t, addr)["local"]
	var done sync.WaitGroup
	for i := range 20 {
		done.Go(func() {
			for j := range 20 {
				key := fmt.Sprint(i, "-", j)
				r, err := c.Submit(t.Context(), &wire.SubmitRequest{Key: key, Jobs: []*wire.JobSpec{{}}})
				if err != nil || r.GetIds()[0] != key {
					t.Errorf("%s: got %v, %v", key, r, err)
				}
				if n, err := queryAll(t.Context(), c, &wire.QueryRequest{Limit: uint32(j)}); n != j || err != nil {
					t.Errorf("%s: got %d, %v", key, n, err)
				}
			}
		})
	}
	done.Wait()
}

// FuzzLocalConn lets a server answer with anything: the call ends, with an error or not.
func FuzzLocalConn(f *testing.F) {
	addr := "unix:" + filepath.Join(f.TempDir(), "s.sock")
	l, err := rpc.Listen(addr, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	answers := make(chan []byte)
	go func() {
		for answer := range answers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, conn)
			conn.Write(answer)
			conn.(*net.UnixConn).CloseWrite()
		}
	}()
	headers := []byte("\x00\x00\x04\x01\x05\x00\x00\x00\x01\x88\x40\x01a\x01b")
	f.Add([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	f.Add(append([]byte("\x00\x00\x00\x04\x00\x00\x00\x00\x00"), headers...))
	f.Add(bytes.Repeat([]byte("\x00\x00\x05\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x02"), 3))
	f.Fuzz(func(t *testing.T, answer []byte) {
		local, err := rpc.DialLocal(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		answers <- answer
		if _, err := wire.NewScheddClient(local).Why(ctx, &wire.WhyRequest{}); ctx.Err() != nil {
			t.Errorf("the call did not end: %v", err)
		}
	})
}
