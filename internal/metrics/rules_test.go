package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const samplesDir = "../../etc/prometheus"

// readSample reads a file of the samples for Prometheus.
func readSample(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samplesDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// promtool returns the path of promtool, which comes with Prometheus.
func promtool(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("promtool"); err == nil {
		return path
	}
	path, err := filepath.Abs("../../build/prometheus/usr/bin/promtool") // of scripts/setup.sh
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("SKIPPED: promtool is not installed (scripts/setup.sh tests), so the rules are not run")
	}
	return path
}

// runPromtool runs promtool in the directory of the samples.
func runPromtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(promtool(t), args...)
	cmd.Dir = samplesDir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// exportedFamilies returns all families of all daemons by name.
func exportedFamilies(t *testing.T) map[string]Family {
	all := map[string]Family{}
	for _, part := range parts {
		r := partFamilies(t, part)
		if part != "web" && part != usersPart { // they have no certificate of the pool
			r.addCertificateExpiry(nil)
		}
		for _, f := range r.Families() {
			all[f.Name] = f
		}
	}
	return all
}

var (
	seriesPattern  = regexp.MustCompile(`roost_[a-z_]+(\{[^}]*\})?`)
	matcherPattern = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	byPattern      = regexp.MustCompile(`\b(?:by|on|without) \(([a-z_, ]*)\)`)
)

// exprProblems returns what an expression has that no daemon exports.
func exprProblems(families map[string]Family, expr string) (problems []string) {
	labels := []string{"instance", "job"}
	found := seriesPattern.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 && !strings.HasPrefix(expr, "up{") {
		problems = append(problems, "it names no metric")
	}
	for _, m := range found {
		name := strings.TrimSuffix(m[0], m[1])
		f, ok := families[name]
		if base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""); !ok && base != name {
			f, ok = families[base]
			ok = ok && f.Type == HistogramType
			labels = append(labels, "le")
		}
		if !ok {
			problems = append(problems, name+" is not exported")
			continue
		}
		labels = append(labels, f.labelNames()...)
		for _, l := range matcherPattern.FindAllStringSubmatch(m[1], -1) {
			i := slices.IndexFunc(f.Labels, func(own Label) bool { return own.Name == l[1] })
			if i < 0 {
				problems = append(problems, fmt.Sprintf("%s has no label %s", name, l[1]))
				continue
			}
			for value := range strings.SplitSeq(l[3], "|") {
				if v := f.Labels[i].Values; v != nil && !slices.Contains(v, value) {
					problems = append(problems, fmt.Sprintf("the label %s of %s is never %q", l[1], name, value))
				}
			}
		}
	}
	for _, m := range byPattern.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(m[1], ",") {
			if l = strings.TrimSpace(l); l != "" && !slices.Contains(labels, l) {
				problems = append(problems, "no metric of it has the label "+l)
			}
		}
	}
	return problems
}

func TestExprProblems(t *testing.T) {
	families := exportedFamilies(t)
	for expr, want := range map[string]string{
		`sum by (band) (roost_schedd_tasks{state="running"})`:                                         "[]",
		`histogram_quantile(0.9, sum by (band, le) (rate(roost_schedd_wait_seconds_bucket[5m]))) > 1`: "[]",
		`roost_schedd_task`:                          "[roost_schedd_task is not exported]",
		`roost_schedd_tasks_bucket`:                  "[roost_schedd_tasks_bucket is not exported]",
		`roost_schedd_tasks{user="ann"}`:             "[roost_schedd_tasks has no label user]",
		`roost_schedd_tasks{state=~"running|ended"}`: `[the label state of roost_schedd_tasks is never "ended"]`,
		`sum by (user) (roost_schedd_tasks)`:         "[no metric of it has the label user]",
		`1 > 0`:                                      "[it names no metric]",
	} {
		if got := fmt.Sprint(exprProblems(families, expr)); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

// TestAlerts holds the alert rules against what is exported and against the manual, which
// says what to do about each. In their own tests each alert fires in one and is quiet in
// another.
func TestAlerts(t *testing.T) {
	rules, tests := readSample(t, "roost-alerts.yml"), readSample(t, "roost-alerts-test.yml")
	manual, err := os.ReadFile(manualFile)
	if err != nil {
		t.Fatal(err)
	}
	families := exportedFamilies(t)
	blocks := strings.Split(rules, "      - alert: ")[1:]
	if len(blocks) < 10 {
		t.Fatalf("%d alerts", len(blocks))
	}
	var names []string
	for _, block := range blocks {
		name, rest, _ := strings.Cut(block, "\n")
		names = append(names, name)
		_, expr, _ := strings.Cut(rest, "expr: ")
		expr = regexp.MustCompile(`(?m)^        (for|labels): `).Split(expr, 2)[0]
		for _, p := range exprProblems(families, strings.Join(strings.Fields(expr), " ")) {
			t.Errorf("%s: %s", name, p)
		}
		if !strings.Contains(string(manual), "\n.TP\n.B "+name+"\n") {
			t.Errorf("roost-metrics(7) does not say what to do about %s", name)
		}
		fires, quiet := "alertname: "+name+"\n        exp_alerts:\n", "alertname: "+name+"\n        exp_alerts: []\n"
		if !strings.Contains(tests, fires) || !strings.Contains(tests, quiet) {
			t.Errorf("no test in which %s fires, or none in which it does not", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\.B (Roost[A-Za-z]+)$`).FindAllStringSubmatch(string(manual), -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("roost-metrics(7) tells of %s, and there is no such alert", m[1])
		}
	}
	runPromtool(t, "test", "rules", "roost-alerts-test.yml")
	runPromtool(t, "check", "config", "--syntax-only", "prometheus.yml")
	runPromtool(t, "check", "config", "--syntax-only", "prometheus-discovery.yml")
}

// TestDashboards holds the expressions of the Grafana dashboards against what is
// exported, and has promtool parse them.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samplesDir, "grafana", "*.json"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d dashboards, want 7: %v", len(files), err)
	}
	families, shown, ids := exportedFamilies(t), map[string]bool{}, map[string]bool{}
	recording := "groups:\n  - name: dashboards\n    rules:\n"
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID    string
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
				Targets []struct{ Expr, LegendFormat string }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID == "" || ids[d.UID] || len(d.Panels) < 5 {
			t.Errorf("%s: uid %q, %d panels", file, d.UID, len(d.Panels))
		}
		ids[d.UID] = true
		for i, p := range d.Panels {
			if p.ID != i+1 || p.Title == "" || len(p.Targets) == 0 || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: panel %d is %+v", file, i+1, p)
			}
			for _, target := range p.Targets {
				for _, problem := range exprProblems(families, target.Expr) {
					t.Errorf("%s: %s: %s", file, p.Title, problem)
				}
				for _, m := range seriesPattern.FindAllString(target.Expr, -1) {
					shown[regexp.MustCompile(`_bucket$|\{.*`).ReplaceAllString(m, "")] = true
				}
				recording += fmt.Sprintf("      - record: d%d\n        expr: %q\n", len(recording),
					strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			}
		}
	}
	for name := range families {
		base := strings.TrimSuffix(name, "_count")
		if !shown[base] && !strings.Contains(name, "_startd_") {
			t.Errorf("no dashboard shows %s", name)
		}
	}
	file := filepath.Join(t.TempDir(), "dashboards.yml")
	if err := os.WriteFile(file, []byte(recording), 0o600); err != nil {
		t.Fatal(err)
	}
	runPromtool(t, "check", "rules", file)
}
