package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// prometheusTest is a Prometheus that reads a pool by the sample configuration.
type prometheusTest struct {
	t       *testing.T
	address string
}

// prometheusProgram returns the path of Prometheus.
func prometheusProgram(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("prometheus"); err == nil {
		return path
	}
	path, err := filepath.Abs("../../build/prometheus/usr/bin/prometheus") // of scripts/setup.sh
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("SKIPPED: prometheus is not installed (scripts/setup.sh tests)")
	}
	return path
}

// startPrometheus starts Prometheus with the sample configuration. Only the targets, the
// token, and the scheme of a pool without TLS are other ones.
func startPrometheus(t *testing.T, targets map[string]string) prometheusTest {
	t.Helper()
	program, dir := prometheusProgram(t), openDir(t)
	sample, err := os.ReadFile("../../etc/prometheus/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(dir, "roost.token")
	var list []string
	for _, address := range targets {
		list = append(list, address)
	}
	text := strings.NewReplacer("15s", "500ms", "scheme: https", "scheme: http", "/etc/prometheus/roost.token", token,
		"    tls_config:\n      ca_file: /etc/prometheus/roost-ca.pem\n", "", "central1:9711, central1:9712",
		strings.Join(list, ", "), "      - targets: [login1:9713]\n        labels: {part: submit}\n", "").
		Replace(string(sample))
	rules, err := os.ReadFile("../../etc/prometheus/roost-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"prometheus.yml": text, "roost-alerts.yml": string(rules),
		"roost.token": metricsToken} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := prometheusTest{t, freeAddresses(t, 1)[0]}
	var log strings.Builder
	cmd := exec.Command(program, "--config.file", filepath.Join(dir, "prometheus.yml"),
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", p.address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	startServer(t, cmd, syscall.SIGKILL, func(err error) {
		if err != nil || t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log.String())
		}
	})
	return p
}

// ask asks the interface of Prometheus, and reports whether it has answered.
func (p prometheusTest) ask(path string, answer any) bool {
	response, err := http.Get("http://" + p.address + "/api/v1/" + path)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var all struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		return false // it is not ready yet
	}
	if all.Status != "success" {
		p.t.Errorf("%s: %s", path, all.Error)
		return false
	}
	if err := json.Unmarshal(all.Data, answer); err != nil {
		p.t.Fatalf("%s: %v in %s", path, err, all.Data)
	}
	return true
}

// series returns how many series an expression has now.
func (p prometheusTest) series(expr string) int {
	var answer struct{ Result []json.RawMessage }
	if !p.ask("query?query="+url.QueryEscape(expr), &answer) {
		return -1
	}
	return len(answer.Result)
}

// TestPrometheus has a real Prometheus read the daemons of a pool. It takes the sample
// configuration and the alert rules as they are, and shows each panel of the dashboards.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	pool, addresses := metricsPool(t)
	p := startPrometheus(t, addresses)
	finish := pool.sleepersOf(t, "run", "  count = 6\n  cpus = 1\n")
	var down []string
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		var targets struct {
			ActiveTargets []struct{ ScrapeURL, Health, LastError string }
		}
		if !p.ask("targets?state=active", &targets) {
			return false
		}
		down = nil
		for _, target := range targets.ActiveTargets {
			if target.Health != "up" {
				down = append(down, target.ScrapeURL+": "+target.Health+" "+target.LastError)
			}
		}
		return len(targets.ActiveTargets) == len(addresses) && len(down) == 0
	}) {
		t.Fatalf("not all targets are up: %q", down)
	}
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		return p.series(`sum(roost_schedd_tasks{state="running"}) == 4`) == 1 &&
			p.series(`sum(roost_schedd_waiting_tasks) == 2`) == 1
	}) {
		t.Fatal("Prometheus does not see four tasks run and two wait")
	}
	finish()
	pool.awaitSuccess(t, "run")
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		return p.series(`sum(rate(roost_schedd_attempts_ended_total{cause="exited"}[1m])) > 0`) == 1
	}) {
		t.Fatal("Prometheus does not see the tasks end")
	}
	p.checkRules()
	p.checkDashboards()
}

// checkRules checks that all alert rules are evaluated without an error.
func (p prometheusTest) checkRules() {
	p.t.Helper()
	var answer struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	var wrong []string
	count := 0
	if !pollUntil(p.t.Context(), awaitTimeout, func() bool {
		wrong, count = nil, 0
		if !p.ask("rules", &answer) {
			return false
		}
		for _, g := range answer.Groups {
			for _, r := range g.Rules {
				if count++; r.Health != "ok" {
					wrong = append(wrong, r.Name+": "+r.Health+" "+r.LastError)
				}
			}
		}
		return count > 0 && len(wrong) == 0
	}) {
		p.t.Errorf("of %d rules: %q", count, wrong)
	}
}

// noSeriesHere matches panels that show what such a pool does not have. It has no
// certificates and no object store, and metrics of single users are off unless a node
// file asks for them.
var noSeriesHere = regexp.MustCompile(`Certificates end|^Object store:|by user$`)

// checkDashboards checks that each panel of the dashboards shows something.
func (p prometheusTest) checkDashboards() {
	p.t.Helper()
	files, err := filepath.Glob("../../etc/prometheus/grafana/*.json")
	if err != nil || len(files) == 0 {
		p.t.Fatalf("no dashboards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			p.t.Fatal(err)
		}
		for _, panel := range d.Panels {
			shows := func() bool { // rates need two samples
				return slices.ContainsFunc(panel.Targets, func(target struct{ Expr string }) bool {
					return p.series(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m")) > 0
				})
			}
			if !noSeriesHere.MatchString(panel.Title) && !pollUntil(p.t.Context(), awaitTimeout, shows) {
				p.t.Errorf("%s: %q shows nothing: %s", filepath.Base(file), panel.Title, fmt.Sprint(panel.Targets))
			}
		}
	}
}
