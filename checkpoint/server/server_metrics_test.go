package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// scrape reads the metrics at an address, without the prefix of their names.
func scrape(ctx context.Context, address, token string) (values map[string]float64, err error) {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	values = map[string]float64{}
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		name, text, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(text, 64); ok && err == nil {
			values[strings.TrimPrefix(name, "roost_checkpoint_server_")] = v
		}
	}
	return values, nil
}

// runningServer is a whole server of a node, which root of this machine calls.
type runningServer struct {
	*testing.T
	node    *config.Node
	metrics string // address
	client  wire.CheckpointServerClient
	stop    func()
}

const metricsToken = "0123456789abcdef0123456789abcdef"

// startServer runs the server with these settings, and awaits that it answers.
func startServer(t *testing.T, own *config.CheckpointServerSettings) *runningServer {
	t.Helper()
	run, err := os.MkdirTemp("", "roost") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	token := filepath.Join(run, "token")
	if err := os.WriteFile(token, []byte(metricsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &runningServer{T: t, metrics: l.Addr().String()}
	l.Close()
	own.Listen = []string{"unix:" + filepath.Join(run, "s")}
	s.node = &config.Node{Name: "n1", Images: own,
		Metrics: &config.MetricsSettings{CheckpointServer: s.metrics, TokenFile: token}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, s.node, nil) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended: %v", err)
		}
		done <- nil
	}
	t.Cleanup(s.stop)
	conn, err := rpc.Dial(own.Listen[0], nil, peer.CheckpointServer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s.client = wire.NewCheckpointServerClient(conn)
	s.await("the server answers", func() bool {
		_, err := s.client.ListPackages(t.Context(), &wire.PackageQuery{})
		return err == nil
	})
	return s
}

func (s *runningServer) await(what string, ok func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Fatalf("%s: not within a minute", what)
		}
	}
}

// awaitMetrics waits until the server exports these values.
func (s *runningServer) awaitMetrics(want map[string]float64) {
	s.Helper()
	s.await(fmt.Sprintf("the metrics are %v", want), func() bool {
		got, err := scrape(s.Context(), s.metrics, metricsToken)
		for name, value := range want {
			if v, ok := got[name]; !ok || v != value {
				return false
			}
		}
		return err == nil
	})
}

// TestServerMetrics reads the metrics of a whole server while blobs come, are sent,
// damaged and collected.
func TestServerMetrics(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, &config.CheckpointServerSettings{Dir: dir, MaxFilesOfUser: 10_000, Max: 100_000})
	s.awaitMetrics(map[string]float64{`blobs{state="whole"}`: 0, "uploads": 0, "transfers": 0, "max_blob_bytes": 100_000,
		"damaged_chunks_total": 0, "collected_blobs_total": 0, "quota_used_ratio": 0})
	source, _ := openBlobs(t, blobstore.Options{})
	m, err := source.Add(t.Context(), bytes.NewReader(make([]byte, 9_500)), "")
	if err != nil {
		t.Fatal(err)
	}
	digest := m.Digest()
	if err := push(t.Context(), s.client, source, digest, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.PinBlobs(t.Context(), &wire.BlobPins{Digests: []string{string(digest)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.SetPackage(t.Context(), &wire.PackageChange{Name: "web", Version: "1", Digest: string(digest),
		Uid: 7, User: "ann"}); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		stream, err := s.client.GetChunks(t.Context(), &wire.BlobRequest{Digest: string(digest), Chunks: []uint32{0}})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	s.awaitMetrics(map[string]float64{`blobs{state="whole"}`: 1, "blob_bytes": 9_500, "quota_used_ratio": 0.95,
		"full_quotas": 1, "pins": 2, "packages": 1, "package_versions": 1, `chunks_total{source="server"}`: 1,
		`chunks_total{source="machine"}`: 0, "chunk_bytes_total": 9_500, "transfers": 0})
	h := string(digest)[len("sha256:"):]
	if err := os.WriteFile(filepath.Join(dir, ".blobs", "blobs", h[:2], h), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := read(); err == nil {
		t.Error("a damaged chunk was sent")
	}
	s.awaitMetrics(map[string]float64{"damaged_chunks_total": 1, `chunks_total{source="server"}`: 1})
}

// TestUploadMetrics reads the metrics while an upload waits for its chunks.
func TestUploadMetrics(t *testing.T) {
	s := startServer(t, &config.CheckpointServerSettings{Dir: t.TempDir()})
	source, _ := openBlobs(t, blobstore.Options{})
	m, err := source.Add(t.Context(), strings.NewReader("the contents"), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := s.client.PutBlob(ctx)
	if err == nil {
		err = stream.Send(&wire.BlobPart{Manifest: m.Encode(), Uid: 7})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.awaitMetrics(map[string]float64{"uploads": 1, "transfers": 1, `blobs{state="unfinished"}`: 1})
	cancel()
	s.awaitMetrics(map[string]float64{"uploads": 0, "transfers": 0, `blobs{state="unfinished"}`: 0})
}
