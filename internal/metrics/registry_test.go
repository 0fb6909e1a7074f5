package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/roost-batch/roost"
)

// partFamilies registers the metrics of a daemon and returns its registry.
func partFamilies(t testing.TB, part string) *Registry {
	t.Helper()
	r := NewRegistry(part)
	switch part {
	case "schedd":
		NewSchedd(r, t.TempDir())
	case "negotiator":
		NewNegotiator(r, t.TempDir())
	case "collector":
		NewCollector(r)
	case "startd":
		NewStartd(r)
	case "web":
		NewWeb(r)
	case "accountant":
		NewAccountant(r, t.TempDir())
	case "checkpoint_server":
		NewCheckpointServer(r, t.TempDir())
	case usersPart:
		r = newRegistry(usersPart)
		NewUsers(r)
	}
	return r
}

var parts = []string{"schedd", "negotiator", "collector", "startd", "web", "accountant", "checkpoint_server", usersPart}

func TestFamilies(t *testing.T) {
	legal := regexp.MustCompile(`^roost_(schedd|negotiator|collector|startd|web|accountant|checkpoint_server)_[a-z_]+$`)
	forbidden := []string{"job", "task", "user", "owner", "node", "host", "machine", "id", "name"}
	for _, part := range parts {
		r := partFamilies(t, part)
		if r.series > maxSeries(part) || r.series == 0 {
			t.Errorf("%s: %d series, %d at most", part, r.series, maxSeries(part))
		}
		t.Logf("%s: at most %d series of %d", part, r.series, maxSeries(part))
		for _, f := range r.Families() {
			if !legal.MatchString(f.Name) || strings.Contains(f.Name, "__") {
				t.Errorf("%s is no name of a metric", f.Name)
			}
			if f.Type == HistogramType && !strings.HasSuffix(f.Name, "_seconds") {
				t.Errorf("the histogram %s is not in seconds", f.Name)
			}
			if f.Help == "" || !strings.HasSuffix(f.Help, ".") {
				t.Errorf("%s: the help %q is not a sentence", f.Name, f.Help)
			}
			for _, l := range f.Labels {
				if part == usersPart && l.Name == "user" && l.count() == maxUsers+1 {
					continue
				}
				if slices.Contains(forbidden, l.Name) {
					t.Errorf("%s has the label %s, which has no bound", f.Name, l.Name)
				}
				if l.count() < 1 || l.count() > 101 || (l.Most > 0) == (len(l.Values) > 0) {
					t.Errorf("%s: label %s has %d values", f.Name, l.Name, l.count())
				}
			}
		}
	}
}

// TestTooManySeries checks the cap: a registry refuses a family that goes beyond it.
func TestTooManySeries(t *testing.T) {
	r := NewRegistry("startd")
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "could export") {
			t.Errorf("got %q", text)
		}
	}()
	r.Gauge("wide", "Too wide.", Label{Name: "class", Most: 200})
}

func TestNilHandles(t *testing.T) {
	s, n, c, d := NewSchedd(nil, ""), NewNegotiator(nil, ""), NewCollector(nil), NewStartd(nil)
	w, a, b := NewWeb(nil), NewAccountant(nil, ""), NewCheckpointServer(nil, "")
	b.Uploads.Add(1)
	b.SentChunk(5)
	b.PlannedChunks(3)
	w.ObserveRequest(time.Second, 1, 200)
	w.CountLoginFailure("link")
	w.ActiveRequests.Add(1)
	a.Ingested.Inc(JobEntry)
	NewUsers(nil).Snapshots.Refresh(roostTime, func() UserSnapshot { t.Errorf("users for nobody"); return nil })
	if s.IsOn() {
		t.Errorf("without a registry something is counted")
	}
	s.Submits.Inc(SubmitAccepted)
	s.WaitTime.Observe(1, 2)
	n.CycleTime.ObserveSince(n.CycleTime.Now())
	c.Expired.Add(3)
	d.Snapshots.OnStale(func() { t.Errorf("nobody reads, and the owner was asked") })
	d.Snapshots.Refresh(roostTime, func() StartdSnapshot { t.Errorf("a snapshot for nobody"); return StartdSnapshot{} })
}

// TestLabelLists compares the lists of labels with those of the vocabulary.
func TestLabelLists(t *testing.T) {
	if got := bandLabel().Values[roost.ProductionBand]; got != "production" || len(bandLabel().Values) != BandCount {
		t.Errorf("bands: %v", bandLabel().Values)
	}
	if got := stateLabel().Values; got[roost.Exiting] != "exiting" || len(got) != StateCount {
		t.Errorf("states: %v", got)
	}
	for kind, want := range map[string]int{"other": 0, "no match": 1, "gang": 12, "never heard of": 0} {
		if got := WaitReason(kind); got != want {
			t.Errorf("%q: %d, want %d", kind, got, want)
		}
	}
}

// TestOutOfRange checks that an index beyond a list of values counts as the last.
func TestOutOfRange(t *testing.T) {
	r := NewRegistry("schedd")
	s := NewSchedd(r, t.TempDir())
	s.AttemptsEnded.Inc(99, 99)
	s.AttemptsEnded.Inc(-1, 0)
	s.LostSeconds.AddSeconds(-5, 0)
	ended := gather(t, r)["roost_schedd_attempts_ended_total"]
	for _, want := range []map[string]string{{"band": "monitoring", "cause": "lost"},
		{"band": "free", "cause": "exited"}} {
		if got := series(ended, want).GetCounter().GetValue(); got != 1 {
			t.Errorf("%v: %v, want 1", want, got)
		}
	}
	lost := gather(t, r)["roost_schedd_lost_seconds_total"]
	if got := series(lost, map[string]string{"cause": "exited"}); got == nil || got.GetCounter().GetValue() != 0 {
		t.Errorf("a negative time was counted: %v", got)
	}
}

// gather returns the families of a registry by name.
func gather(t testing.TB, r *Registry) map[string]*dto.MetricFamily {
	t.Helper()
	all, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*dto.MetricFamily{}
	for _, f := range all {
		byName[f.GetName()] = f
	}
	return byName
}

// series returns the series of a family with these labels, nil if there is none.
func series(f *dto.MetricFamily, labels map[string]string) *dto.Metric {
	for _, m := range f.GetMetric() {
		matches := len(m.GetLabel()) == len(labels)
		for _, l := range m.GetLabel() {
			matches = matches && labels[l.GetName()] == l.GetValue()
		}
		if matches {
			return m
		}
	}
	return nil
}

// countSeries counts the series as a server stores them.
func countSeries(all map[string]*dto.MetricFamily) (n int) {
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 3
			} else {
				n++
			}
		}
	}
	return n
}
