package schedd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeCollector answers every query with the same ads.
type fakeCollector struct {
	wire.UnimplementedCollectorServer
	mu  sync.Mutex
	ads []string
}

func (c *fakeCollector) Query(_ *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ad := range c.ads {
		if err := stream.Send(&wire.AdText{Ad: ad}); err != nil {
			return err
		}
	}
	return nil
}

// TestInfeasibleRefused checks that a request for more than any card has is refused. It
// is refused as soon as the cards are known, and until larger ones are.
func TestInfeasibleRefused(t *testing.T) {
	p := newPool(t)
	p.stop()
	c := &fakeCollector{ads: []string{`[Name = "node3"; TotalGpus = 2; GpuMemoryMax = 40960]`}}
	address := "unix:" + filepath.Join(p.node.Dir, "collector.sock")
	serve(t, address, func(s *rpc.Server) { wire.RegisterCollectorServer(s, c) })
	p.node.Collectors = []string{address}
	p.start()

	submit := func(key, ad string, columns ...*wire.Column) error {
		_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: key, Jobs: []*wire.JobSpec{{
			Ad:    fmt.Sprintf("[Cmd = \"/bin/true\"; Iwd = %q; HoldOnSubmit = true; %s]", p.node.Dir, ad),
			Count: uint32(max(len(columns)*2, 1)), Columns: slices.DeleteFunc(columns, func(c *wire.Column) bool {
				return c == nil
			}),
		}}})
		return rpc.FromStatus(err)
	}
	var err error
	first := ""
	for n := 0; err == nil; n++ { // accepted until the schedd has heard of the machine
		key := fmt.Sprint("early", n)
		if err = submit(key, "RequestGpuMemory = 81920"); err == nil && first == "" {
			first = key
		}
	}
	const want = "the largest has 40GiB, on node3"
	if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), want) {
		t.Fatalf("more than any card has: got %v, want %q", err, want)
	}
	if first != "" {
		if err := submit(first, "RequestGpuMemory = 81920"); err != nil {
			t.Errorf("the key of a job that was taken: %v", err)
		}
	}
	err = submit("columns", "RequestGpus = 1", &wire.Column{Name: "RequestGpus", Values: []string{"1", "3"}})
	if err == nil || !strings.Contains(err.Error(), "task 1: ") ||
		!strings.Contains(err.Error(), "the most are 2, on node3") {
		t.Errorf("more GPUs than any machine has: %v", err)
	}
	for key, ad := range map[string]string{"fits": "RequestGpuMemory = 40960", "cpus": "RequestCpus = 100000",
		"memory": "RequestMemory = 100000000"} {
		if err := submit(key, ad); err != nil {
			t.Errorf("%s: %v", ad, err)
		}
	}
	c.mu.Lock()
	c.ads = append(c.ads, `[Name = "plain"; TotalCpus = 4; TotalMemory = 8192; TotalDisk = 100000]`)
	c.ads[0] = `[Name = "node3"; TotalGpus = 2; GpuMemoryMax = 40960; TotalCpus = 4; TotalMemory = 8192; TotalDisk = 100000]`
	c.mu.Unlock()
	err = submit("stream", `RequestCpus = 2; AppClass = "stream"`,
		&wire.Column{Name: "Any", Values: []string{"1", "2", "3", "4", "5", "6"}}, nil, nil)
	if err == nil || !strings.Contains(err.Error(),
		"its 6 tasks start together, and even when nothing runs there is room for 4 of them, on 2 of 2 machines") {
		t.Errorf("a stream job that the pool cannot hold: %v", err)
	}
	c.mu.Lock()
	c.ads = append(c.ads, `[Name = "new"; TotalGpus = 8; GpuMemoryMax = 81920]`)
	c.mu.Unlock()
	if err := submit("late", "RequestGpuMemory = 81920"); err != nil {
		t.Errorf("a larger card has come: %v", err)
	}
}
