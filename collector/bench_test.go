package collector

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// BenchmarkAds measures how many machine ads a collector accepts in a second. On
// connections of their own, 64 machines send one ad after the other as each is
// acknowledged. They send only lease renewals, or whole ads that differ each time, with
// and without a watching negotiator. All runs in this process, so the senders' work is
// included.
func BenchmarkAds(b *testing.B) {
	for _, c := range []struct {
		name           string
		whole, watched bool
	}{{"renew", false, false}, {"whole", true, false}, {"watched", true, true}} {
		b.Run(c.name, func(b *testing.B) { benchAds(b, c.whole, c.watched) })
	}
}

func benchAds(b *testing.B, whole, watched bool) {
	const machines = 64
	addr := "unix:" + filepath.Join(b.TempDir(), "c.sock")
	stop := startCollector(b, addr)
	if watched {
		conn, err := rpc.Dial(addr, nil, peer.Collector)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		stream, err := wire.NewCollectorClient(conn).Watch(b.Context(), &wire.WatchAds{Type: "Machine"})
		if err != nil {
			b.Fatal(err)
		}
		go func() { // ends with the collector
			for {
				if _, err := stream.Recv(); err != nil {
					return
				}
			}
		}()
	}
	var senders errgroup.Group
	for i := range machines {
		share := (b.N + i) / machines
		senders.Go(func() error { return sendAds(b, addr, fmt.Sprintf("m%d", i), share, whole) })
	}
	b.ResetTimer()
	if err := senders.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ads/s")
	stop()
}

// sendAds sends n updates of one machine, each when the one before is acknowledged. The
// first is a whole ad.
func sendAds(b *testing.B, addr, name string, n int, whole bool) error {
	conn, err := rpc.Dial(addr, nil, peer.Collector)
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := wire.NewCollectorClient(conn).Advertise(b.Context())
	if err != nil {
		return err
	}
	var attributes strings.Builder
	for i := range 40 {
		fmt.Fprintf(&attributes, "Attribute%d = \"value %d of a machine\"; ", i, i)
	}
	for i := range n {
		m := &wire.AdUpdate{Type: "Machine", Name: name, Sequence: uint64(i + 1), Started: 1, LeaseMs: 60_000}
		if whole || i == 0 {
			m.Ad = fmt.Sprintf(`[MyType = "Machine"; Name = "%s"; LoadAvg = %d; %s]`, name, i, attributes.String())
		} else {
			m.Sequence = 1
		}
		if err := stream.Send(m); err != nil {
			return err
		}
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
	return stream.CloseSend()
}
