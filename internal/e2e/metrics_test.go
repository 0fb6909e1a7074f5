package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

const metricsToken = "0123456789abcdef0123456789abcdef"

// metricsPool starts a pool whose daemons all serve metrics, and returns the address of
// each.
func metricsPool(t *testing.T) (p *Pool, addresses map[string]string) {
	t.Helper()
	file := filepath.Join(openDir(t), "token")
	if err := os.WriteFile(file, []byte(metricsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	addresses = map[string]string{}
	servers := []string{"collector", "negotiator", "schedd", "startd", "web", "accountant", "checkpoint_server",
		"pages"}
	for i, address := range freeAddresses(t, len(servers)) {
		addresses[servers[i]] = address
	}
	pages := addresses["pages"]
	delete(addresses, "pages")
	return nodePool(t, &config.Node{
		Web: &config.WebSettings{Listen: []string{pages}}, Accountant: &config.AccountantSettings{},
		Images: &config.CheckpointServerSettings{},
		Startds: []config.StartdSettings{{Resources: roost.Resources{CPU: 4000, Memory: roost.GiB, Disk: roost.GiB},
			Name: "host1"}},
		Metrics: &config.MetricsSettings{Collector: addresses["collector"], Negotiator: addresses["negotiator"],
			Schedd: addresses["schedd"], Startd: addresses["startd"], Web: addresses["web"],
			Accountant: addresses["accountant"], CheckpointServer: addresses["checkpoint_server"], TokenFile: file,
			Users: true},
	}), addresses
}

// metricsPage reads the metrics of a daemon and returns the values by series.
func metricsPage(ctx context.Context, address, token string) (status int, values map[string]float64, err error) {
	return metricsAt(ctx, "http://"+address+"/metrics", token)
}

// metricsAt is metricsPage for the page with a URL.
func metricsAt(ctx context.Context, url, token string) (status int, values map[string]float64, err error) {
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, err
	}
	values = map[string]float64{}
	for line := range strings.Lines(string(text)) {
		if at := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") && at > 0 {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64); err == nil {
				values[line[:at]] = v
			}
		}
	}
	return response.StatusCode, values, nil
}

// awaitUser waits until the schedd shows these values of the user that runs the test.
func awaitUser(t *testing.T, schedd string, want map[string]float64) {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]float64
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		var status int
		status, got, err = metricsAt(t.Context(), "http://"+schedd+"/metrics/users", metricsToken)
		for name, value := range want {
			v, there := got[fmt.Sprintf("roost_schedd_user_%s{user=%q}", name, me.Username)]
			if !there || v != value {
				return false
			}
		}
		return err == nil && status == 200
	}) {
		t.Fatalf("the user has %v, want %v (%v)", got, want, err)
	}
}

// TestMetrics reads the metrics of each daemon of a pool while tasks wait, run and end.
func TestMetrics(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	p, addresses := metricsPool(t)
	for daemon, address := range addresses {
		if !pollUntil(t.Context(), awaitTimeout, func() bool { // the master starts these two last
			_, _, err := metricsPage(t.Context(), address, metricsToken)
			return err == nil
		}) {
			t.Fatalf("%s serves no metrics", daemon)
		}
		for token, want := range map[string]int{"": 401, metricsToken + "x": 401, metricsToken: 200} {
			status, values, err := metricsPage(t.Context(), address, token)
			if status != want || (len(values) > 5) != (want == 200) {
				t.Errorf("%s with token %q: %d, %d values, %v", daemon, token, status, len(values), err)
			}
		}
	}
	await := func(daemon string, want map[string]float64) {
		t.Helper()
		awaitMetrics(t, daemon, addresses[daemon], want)
	}
	finish := p.sleepersOf(t, "secret-name", "  count = 6\n  cpus = 1\n")
	if stdout, _, code := p.Command(t.Context(), "submit", filepath.Join(p.Dir, "none.hcl")); code == 0 {
		t.Fatalf("a job without a file was accepted: %s", stdout)
	}
	await("schedd", map[string]float64{`tasks{band="batch",state="running"}`: 4, `tasks{band="batch",state="idle"}`: 2,
		`waiting_tasks{reason="busy"}`: 2, `attempts_started_total{band="batch"}`: 4, `claims{state="busy"}`: 4,
		`submits_total{result="accepted"}`: 1, `wait_seconds_count{band="batch"}`: 4})
	awaitUser(t, addresses["schedd"], map[string]float64{"waiting_tasks": 2, "running_tasks": 4, "cores": 4, "gpus": 0})
	await("negotiator", map[string]float64{"leader": 1, "machines": 1, "schedds": 1, `pool_cores{state="held"}`: 4,
		`pool_cores{state="free"}`: 0, `grants_total{band="batch",result="claimed"}`: 4,
		`unplaced_requests{reason="busy"}`: 1, `replicas{state="current"}`: 1, `group_cores{group="none"}`: 4})
	await("collector", map[string]float64{`nodes{class="X86_64",state="claimed"}`: 1, `ads{type="Machine"}`: 1,
		`cores{class="X86_64",state="held"}`: 4, `desktops{lent="yes"}`: 0})
	await("startd", map[string]float64{`tasks{class="batch"}`: 4, `cores{state="held"}`: 4, `cores{state="free"}`: 0,
		"oom_kills_total": 0})
	finish()
	p.awaitSuccess(t, "secret-name")
	p.sleepersOf(t, "taken", "  count = 2\n  cpus = 2\n")
	await("schedd", map[string]float64{`tasks{band="batch",state="running"}`: 2, `tasks{band="batch",state="idle"}`: 0,
		`attempts_started_total{band="batch"}`:              8, // their processes are there, so they end by the removal
		`attempts_ended_total{band="batch",cause="exited"}`: 6, `run_seconds_count{band="batch"}`: 6})
	if stdout, stderr, code := p.Command(t.Context(), "rm", "@taken"); code != 0 {
		t.Fatalf("rm: %s%s", stdout, stderr)
	}
	await("schedd", map[string]float64{`attempts_ended_total{band="batch",cause="removed"}`: 2,
		`tasks{band="batch",state="running"}`: 0, `claims{state="busy"}`: 0})
	await("startd", map[string]float64{`tasks{class="batch"}`: 0, `cores{state="free"}`: 4})
	await("accountant", map[string]float64{`ingested_total{kind="machine"}`: 1, "gaps": 0, "duplicates_total": 0})
	await("schedd", map[string]float64{"feed_backlog_events": 0})
	await("checkpoint_server", map[string]float64{`blobs{state="whole"}`: 0, "pins": 0, "uploads": 0})
	await("web", map[string]float64{"in_flight": 0, "streams": 0, "resyncs_total": 0,
		`login_failures_total{way="token"}`: 0})
	_, values, err := metricsPage(t.Context(), addresses["schedd"], metricsToken)
	useful, lost := values["roost_schedd_useful_seconds_total"],
		values[`roost_schedd_lost_seconds_total{cause="removed"}`]
	if err != nil || useful <= 0 || lost <= 0 || values["roost_schedd_commit_seconds_count"] == 0 {
		t.Errorf("%v s were useful, %v s were lost, %v", useful, lost, err)
	}
}

// awaitMetrics waits until the series of a daemon have these values.
func awaitMetrics(t *testing.T, daemon, address string, want map[string]float64) {
	t.Helper()
	var values map[string]float64
	var wrong []string
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		_, got, err := metricsPage(t.Context(), address, metricsToken)
		if err != nil {
			return false
		}
		values, wrong = got, nil
		for series, n := range want {
			if v, ok := got["roost_"+daemon+"_"+series]; !ok || v != n {
				wrong = append(wrong, fmt.Sprintf("%s is %v (%v), want %v", series, v, ok, n))
			}
		}
		return wrong == nil
	}) {
		for series, v := range values {
			if v != 0 && strings.Contains(series, "_total{") {
				wrong = append(wrong, fmt.Sprintf("%s is %v", series, v))
			}
		}
		t.Fatalf("%s:\n%s", daemon, strings.Join(wrong, "\n"))
	}
	forbidden := regexp.MustCompile(`[{,](job|task|user|owner|node|host|machine|id|name)="|secret-|taken|root`)
	for series := range values {
		if forbidden.MatchString(series) {
			t.Errorf("the series %s has no bound", series)
		}
	}
}
