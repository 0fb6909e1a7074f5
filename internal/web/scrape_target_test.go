package web

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/session"
)

// metricsAd returns the ad of a daemon of a node that serves metrics.
func metricsAd(node string, m config.MetricsSettings, tls bool) string {
	n := &config.Node{Name: node, Metrics: &m, Startds: []config.StartdSettings{{Name: node}}}
	if tls {
		n.TLS = &config.TLSFiles{}
	}
	ad := classad.New()
	ad.SetString(roost.AttrName, node)
	n.DescribeMetrics(ad, node)
	return ad.String()
}

// hostileMetricsAds claim other targets than ports of their nodes.
var hostileMetricsAds = []string{
	`[Name = "evil"; MetricsPorts = {[Daemon = "schedd"; Port = 9713]}]`, // the collector knows no node of it
	`[Machine = "user:secret@evil/x?"; MetricsPorts = {[Daemon = "schedd"; Port = 9713]}]`,
	`[Machine = "n8"; MetricsPorts = {[Daemon = "schedd"; Port = 70000], [Daemon = "a b"; Port = 1],
		[Daemon = "schedd"; Port = error], 7, [Port = 5]}]`,
	`[Machine = "n8"; MetricsPorts = "9713"]`,
	`[Machine = "n9"; MetricsPorts = {[Daemon = "startd"; Port = 22; Local = true; Host = "victim"]}]`,
	`no ad`,
}

// targetsOf asks for a list of targets.
func (w *testWeb) targetsOf(path, token string) map[string]map[string]string {
	w.Helper()
	answer := w.do(as(w.request("GET", path, ""), token))
	var list []document.ScrapeTarget
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || answer.Code != 200 || list == nil ||
		answer.Header().Get("Content-Type") != "application/json" {
		w.Fatalf("%s: %d %s: %s", path, answer.Code, answer.Header().Get("Content-Type"), answer.Body)
	}
	all := map[string]map[string]string{}
	for _, t := range list {
		for _, target := range t.Targets {
			all[target] = t.Labels
		}
	}
	return all
}

func (w *testWeb) setMetricsAds() {
	w.schedd.ads = append([]string{
		metricsAd("central1", config.MetricsSettings{Collector: "central1:9711", Negotiator: "10.0.0.9:9712"}, true),
		metricsAd("central1", config.MetricsSettings{Collector: "central1:9711", Negotiator: "10.0.0.9:9712"}, true),
		metricsAd("n1", config.MetricsSettings{Schedd: "127.0.0.1:9713", Startd: "127.0.0.1:9714",
			CheckpointServer: "127.0.0.1:9717"}, false),
		metricsAd("n2", config.MetricsSettings{Startd: "127.0.0.1:9714"}, false), // only n2 reaches it
		metricsAd("n3", config.MetricsSettings{}, true),
	}, hostileMetricsAds...)
}

// TestDaemonTargets checks what Prometheus is told of the daemons. An ad is believed
// about ports of its own node, and about nothing else.
func TestDaemonTargets(t *testing.T) {
	w := newTestWeb(t)
	w.setMetricsAds()
	token := w.apiToken("ann", session.Metrics)
	want := map[string]string{"central1:9711": "https collector central1", "central1:9712": "https negotiator central1",
		"127.0.0.1:9713": "http schedd n1", "127.0.0.1:9717": "http checkpoint_server n1",
		"127.0.0.1:9714": "http startd n1"}
	got := w.targetsOf("/v1/sd", token)
	for target, labels := range got {
		if text := labels["__scheme__"] + " " + labels["daemon"] + " " + labels["node"]; text != want[target] {
			t.Errorf("%s: got %q, want %q", target, text, want[target])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	if got := w.targetsOf("/v1/sd?daemon=schedd", token); len(got) != 1 {
		t.Errorf("schedds: got %v", got)
	}
}

// TestNameTargets checks what Prometheus is told of the tasks of services.
func TestNameTargets(t *testing.T) {
	w := newTestWeb(t)
	w.schedd.text = "hub"
	token := w.apiToken("ann", session.Metrics)
	got := w.targetsOf("/v1/names/sd?name=hub", token)["192.0.2.7:20001"]
	for name, want := range map[string]string{"name": "hub", "user": "hub", "job_id": "2.n1", "index": "1",
		"revision": "0", "__meta_roost_state": "ready", "__meta_roost_port": "http", "__meta_roost_node": "hub"} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
	for query, n := range map[string]int{"port=http": 1, "port=metrics": 0, "state=ready": 1, "state=lost": 0} {
		if got := w.targetsOf("/v1/names/sd?"+query, token); len(got) != n {
			t.Errorf("%s: got %v", query, got)
		}
	}
	long := w.request("GET", "/v1/names/sd?owner="+strings.Repeat("x", 300), "")
	if answer := w.do(as(long, token)); answer.Code != 400 {
		t.Errorf("a long owner: got %d", answer.Code)
	}
}

// TestDiscovery has Prometheus discover targets with the sample configuration.
func TestDiscovery(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		promtool, err = filepath.Abs("../../build/prometheus/usr/bin/promtool") // of scripts/setup.sh
		if err == nil {
			_, err = os.Stat(promtool)
		}
	}
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed (scripts/setup.sh tests)")
	}
	w := newTestWeb(t)
	w.schedd.text = "hub"
	w.setMetricsAds()
	server := httptest.NewServer(w.server.table)
	defer server.Close()
	sample, err := os.ReadFile("../../etc/prometheus/prometheus-discovery.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := strings.NewReplacer("https://roost.example.com", server.URL, "port=metrics", "port=http",
		"/etc/prometheus", dir, "rule_files:\n  - roost-alerts.yml\n", "").Replace(string(sample))
	for name, content := range map[string]string{"prometheus.yml": text, "roost.token": "x",
		"api.token": w.apiToken("ann", session.Metrics), "roost-ca.pem": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for job, want := range map[string][]string{
		"roost":          {`"central1:9711"`, `"https"`, `"daemon": "negotiator"`, `"127.0.0.1:9713"`},
		"roost-services": {`"192.0.2.7:20001"`, `"user": "hub"`, `"node": "hub"`},
	} {
		out := ""
		for _, patience := range []string{"1s", "5s", "60s"} { // it always waits that long
			text, err := exec.Command(promtool, "check", "service-discovery", "--timeout="+patience,
				filepath.Join(dir, "prometheus.yml"), job).CombinedOutput()
			if out = string(text); err == nil && !slices.ContainsFunc(want, func(part string) bool {
				return !strings.Contains(out, part)
			}) {
				break
			}
		}
		for _, part := range want {
			if !strings.Contains(out, part) {
				t.Errorf("%s: it has no %s:\n%s", job, part, out)
			}
		}
		if strings.Contains(out, "evil") || strings.Contains(out, "victim") {
			t.Errorf("%s: a hostile target is believed:\n%s", job, out)
		}
	}
}
