package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// findCaddy returns the program, or skips the test.
func findCaddy(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("caddy")
	if err == nil {
		return path
	}
	if path, err = filepath.Abs("../../build/caddy/usr/bin/caddy"); err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("SKIPPED: the web daemon behind Caddy is not tested: caddy is missing (scripts/setup.sh tests)")
	}
	return path
}

// startCaddy runs Caddy with the sample of etc/web, on a port and a socket of the test's.
// It has the test's certificate, as nobody outside can give it one.
func startCaddy(t *testing.T, dir, port, socket string) {
	t.Helper()
	program := findCaddy(t)
	sample, err := os.ReadFile("../../etc/web/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	text := string(sample)
	for from, to := range map[string]string{
		"roost.example.org {\n": "https://localhost:" + port + " {\n\tbind 127.0.0.1\n\ttls " + dir + "/roost.pem " +
			dir + "/roost.key\n",
		"unix//run/roost/web.sock": "unix/" + socket} {
		if !strings.Contains(text, from) {
			t.Fatalf("the sample has no %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	file := filepath.Join(dir, "Caddyfile")
	// no port for its administration, none for redirects, and no file outside
	options := "{\n\tadmin off\n\tauto_https off\n\tstorage file_system " + dir + "/caddy\n}\n"
	if err := os.WriteFile(file, []byte(options+text), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := os.Create(filepath.Join(dir, "caddy.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	cmd := exec.Command(program, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = report, report
	startServer(t, cmd, syscall.SIGTERM, func(error) {
		if t.Failed() {
			text, _ := os.ReadFile(report.Name())
			t.Logf("Caddy reports: %s", text)
		}
	})
}

// TestWebBehindCaddy is TestWebBehindNginx with the sample for Caddy.
func TestWebBehindCaddy(t *testing.T) {
	t.Parallel()
	findCaddy(t)
	useWebBehind(t, startCaddy)
}
