package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// imageCounters reads the metrics of the machine with that number.
func imageCounters(t *testing.T, first string, number int) (fromMachines, fromServer, sent float64) {
	t.Helper()
	host, port, _ := net.SplitHostPort(first)
	n, _ := strconv.Atoi(port)
	_, values, err := metricsPage(t.Context(), net.JoinHostPort(host, strconv.Itoa(n+number)), metricsToken)
	if err != nil {
		t.Fatal(err)
	}
	const received = `roost_startd_image_received_bytes_total{source="%s"}`
	return values[fmt.Sprintf(received, "machine")], values[fmt.Sprintf(received, "server")],
		values["roost_startd_image_sent_bytes_total"]
}

// TestImageFromMachines: the first machine has an image from the checkpoint server. The
// second and third have it from machines that have it.
func TestImageFromMachines(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root mounts images")
	}
	token := filepath.Join(openDir(t), "token")
	if err := os.WriteFile(token, []byte(metricsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	first := freeAddresses(t, 3)[0]
	startds := append(twoNodes(), config.StartdSettings{Name: "n3", Resources: roost.Resources{CPU: 2000,
		Memory: roost.GiB, Disk: roost.GiB}})
	p := &containerPool{t: t, home: t.TempDir(), Pool: nodePool(t, &config.Node{
		Images: &config.CheckpointServerSettings{}, Startds: startds,
		Metrics: &config.MetricsSettings{Startd: first, TokenFile: token}})}
	script := strings.Replace(imageScript, "tar -C root", "head -c 15000000 /dev/urandom >root/model\ntar -C root", 1)
	cmd := exec.CommandContext(t.Context(), "sh", p.write("image.sh", script), "blue")
	cmd.Dir = p.home
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, name := range []string{"n1", "n2", "n3"} {
		job := p.write(name+".hcl", `job "`+name+`" {
  image        = "docker-archive:`+p.home+`/blue.tar"
  directory    = "`+p.home+`"
  cpus         = 0.1
  memory       = "16MiB"
  requirements = "TARGET.Name == \"`+name+`\""
  command      = ["/bin/cat", "/name"]
}
`)
		p.mustRun(t, "submit", job)
		p.awaitSuccess(t, name)
		p.expect("from the image", 0, "logs", "@"+name)
		machines, server, _ := imageCounters(t, first, i)
		if i == 0 && (server < 15e6 || machines != 0) {
			t.Errorf("the first machine has %.0f bytes from the server and %.0f from machines", server, machines)
		}
		if i > 0 && (machines < 15e6 || server != 0) {
			t.Errorf("%s has %.0f bytes from machines and %.0f from the server", name, machines, server)
		}
	}
	total := 0.0
	for i := range 3 {
		_, _, sent := imageCounters(t, first, i)
		total += sent
	}
	if total < 30e6 {
		t.Errorf("the machines sent %.0f bytes to each other", total)
	}
}
