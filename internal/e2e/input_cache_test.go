package e2e

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// TestInputCache runs an array whose tasks share an input file. The file travels to the
// machine once, though several tasks begin together and some come later. A file that was
// changed travels again. So does one that the machine has lost, or has damaged.
func TestInputCache(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	token := filepath.Join(openDir(t), "token")
	if err := os.WriteFile(token, []byte(metricsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	first := freeAddresses(t, 1)[0]
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{
		Startds: []config.StartdSettings{{Name: "n1",
			Resources: roost.Resources{CPU: 4000, Memory: 2 * roost.GiB, Disk: roost.GiB}}},
		Metrics: &config.MetricsSettings{Startd: first, TokenFile: token}})}
	const tasks, size = 12, 3 << 20
	cached := 0.0
	run := func(name string, text []byte, travels int) {
		t.Helper()
		sum := fmt.Sprintf("%x", sha256.Sum256(text))
		job := p.write(name+".hcl", `job "`+name+`" {
  directory = "`+p.home+`"
  transfer  = "always"
  inputs    = ["model", "small"]
  cpus      = 0.5
  memory    = "16MiB"
  disk      = "16MiB"
  count     = `+fmt.Sprint(tasks)+`
  script    = "test $(sha256sum < model | cut -c-64) = `+sum+` && cat small && echo spoiled >> model; rm model small"
}
`)
		p.mustRun(t, "submit", job)
		p.awaitSuccess(t, name)
		_, values, err := metricsPage(t.Context(), first, metricsToken)
		if err != nil {
			t.Fatal(err)
		}
		now := values["roost_startd_input_cache_read_bytes_total"]
		if want := float64((tasks - travels) * size); now-cached != want {
			t.Errorf("%s: %.0f bytes came from the cache, want %.0f", name, now-cached, want)
		}
		cached = now
	}
	write := func(fill byte) []byte {
		text := bytes.Repeat([]byte{fill}, size)
		p.write("model", string(text))
		p.write("small", "x")
		awaitSettled(t, filepath.Join(p.home, "model"))
		return text
	}
	text := write('a')
	run("first", text, 1)
	run("again", text, 0)
	text = write('b')
	run("changed", text, 1)
	lost := func() (files []string) {
		files, _ = filepath.Glob(filepath.Join(p.Dir, "startd", "*", "input-cache", "*.input"))
		if len(files) != 2 {
			t.Errorf("the machine has %v in its cache", files)
		}
		return files
	}
	for _, f := range lost() {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	run("lost", text, 1)
	text = write('c')
	run("third", text, 1)
	for _, f := range strings.Fields(strings.Join(lost(), " ")) {
		file, err := os.OpenFile(f, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		file.WriteAt([]byte("damaged"), size/2)
		file.Close()
	}
	run("damaged", text, 1)
}

// awaitSettled waits until a file is older than the steps of a file system's clock.
func awaitSettled(t *testing.T, path string) {
	t.Helper()
	awaitTrue(t, "the file is a second old", func() bool {
		info, err := os.Stat(path)
		return err == nil && time.Since(info.ModTime()) > 1100*time.Millisecond
	})
}
