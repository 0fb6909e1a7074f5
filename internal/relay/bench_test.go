package relay

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkRelay compares calls to a startd through a relay with those that reach it
// directly. Some are short, and others transfer 16 MiB.
func BenchmarkRelay(b *testing.B) {
	p := newTestPool(b)
	p.tap.off = true
	id := p.identity("n1", peer.Startd)
	p.startNode(id)
	l, err := rpc.Listen("127.0.0.1:0", 0)
	if err != nil {
		b.Fatal(err)
	}
	server := rpc.NewServer(id, peer.MethodAccess())
	wire.RegisterStartdServer(server, echoStartd{})
	go server.Serve(l)
	b.Cleanup(server.Stop)
	schedd := p.identity("login1", peer.Schedd)
	direct, err := rpc.DialNode(l.Addr().String(), schedd, peer.Startd, "n1")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { direct.Close() })
	for name, c := range map[string]wire.StartdClient{"direct": wire.NewStartdClient(direct),
		"relayed": p.dialNode(schedd, "n1")} {
		b.Run("call/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := tail(b.Context(), c, "x", true); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("16MiB/"+name, func(b *testing.B) {
			b.SetBytes(16 << 20)
			for b.Loop() {
				fetchAll(b, c)
			}
		})
	}
}

// fetchAll receives what the startd sends.
func fetchAll(t testing.TB, c wire.StartdClient) (n int) {
	t.Helper()
	files, err := c.Fetch(t.Context(), &wire.FetchRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := files.Recv()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		n += len(m.GetData())
	}
}

// BenchmarkNodes connects nodes to a relay, each with a TLS connection of its own, as
// pilots do. It reports what both ends of each take together, and how long a call to the
// last one takes.
func BenchmarkNodes(b *testing.B) {
	p := newTestPool(b)
	p.tap.off = true
	p.log = slog.New(slog.DiscardHandler)
	nodes := 0
	before := memoryInUse()
	for b.Loop() {
		nodes++
		l, err := Listen(p.relay, p.identity(fmt.Sprint("n", nodes), peer.Startd), p.log)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
	}
	for {
		if n, _ := p.tap.Counts(); n == nodes {
			break
		}
		runtime.Gosched()
	}
	b.ReportMetric(float64(memoryInUse()-before)/float64(nodes)/1024, "KiB/node")
	nodes++
	p.startNode(p.identity(fmt.Sprint("n", nodes), peer.Startd))
	began := time.Now()
	if _, err := tail(b.Context(), p.dialNode(p.identity("login1", peer.Schedd), fmt.Sprint("n", nodes)), "x",
		true); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "ms/last-call")
}

// memoryInUse is the memory of objects and stacks.
func memoryInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
