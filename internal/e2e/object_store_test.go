package e2e

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// TestObjectStore has an image move to an object store, and the server lose its files. A
// task of a job that was submitted before runs in the image.
func TestObjectStore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts images")
	}
	backend := s3mem.New()
	if err := backend.CreateBucket("roost"); err != nil {
		t.Fatal(err)
	}
	objects := httptest.NewServer(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer objects.Close()
	dir := openDir(t)
	token, keys := filepath.Join(dir, "token"), filepath.Join(dir, "keys")
	for file, text := range map[string]string{token: metricsToken,
		keys: "aws_access_key_id = me\naws_secret_access_key = secret\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddresses(t, 1)[0]
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{
		Images: &config.CheckpointServerSettings{Objects: &config.ObjectSettings{Endpoint: objects.URL, Bucket: "roost",
			Prefix: "pools/a", CredentialsFile: keys}},
		Startds: twoNodes(), Metrics: &config.MetricsSettings{CheckpointServer: address, TokenFile: token}})}
	p.makeImage("blue")
	archive := "docker-archive:" + p.home + "/image.tar"
	p.mustRun(t, "image", "pull", archive)
	p.mustRun(t, "submit", "--hold", p.write("job.hcl", "job \"image\" {\n  image = \""+archive+"\"\n"+
		"  directory = \""+p.home+"\"\n  cpus = 0.1\n  memory = \"16MiB\"\n  command = [\"/bin/cat\", \"/name\"]\n}\n"))
	awaitMetrics(t, "checkpoint_server", address, map[string]float64{`blobs{state="whole"}`: 1, "unsent_blobs": 0})
	state, _, err := master.ReadState(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(state.Daemons, func(d master.DaemonState) bool { return d.Role == "checkpoint-server" })
	server := state.Daemons[at].PID
	for _, step := range []error{syscall.Kill(server, syscall.SIGSTOP), // the master starts the next one after the loss
		os.RemoveAll(filepath.Join(p.Dir, "checkpoint-server")), syscall.Kill(server, syscall.SIGKILL)} {
		if step != nil {
			t.Fatal(step)
		}
	}
	awaitMetrics(t, "checkpoint_server", address, map[string]float64{`blobs{state="whole"}`: 1, "unsent_blobs": 0,
		"chunk_bytes_total": 0})
	p.expect("sha256:", 0, "image", "list")
	p.mustRun(t, "release", "1")
	p.awaitSuccess(t, "image")
	p.expect("from the image", 0, "logs", "1")
	awaitMetrics(t, "checkpoint_server", address, map[string]float64{"damaged_chunks_total": 0,
		"object_failures_total": 0})
}
