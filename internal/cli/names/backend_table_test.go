package names

import (
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost/internal/balancer"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// TestBackendTable checks which tasks get connections after each change of the names.
func TestBackendTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, backends := endpointTable{}, newBackendTable(balancer.NewPool(balancer.LeastConnections), "",
			slog.New(slog.DiscardHandler))
		defer backends.stop()
		check := func(what string, want ...string) {
			t.Helper()
			backends.mu.Lock()
			defer backends.mu.Unlock()
			got := []string{}
			for _, b := range backends.backends {
				got = append(got, textOf(b))
			}
			for _, b := range backends.doubtful {
				got = append(got, textOf(b))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		change := func(u *scheddapi.NamesUpdate) {
			table.apply(u)
			if err := backends.update(table, u); err != nil {
				t.Fatal(err)
			}
		}
		list := func(all ...*scheddapi.ServiceEndpoint) *scheddapi.NamesUpdate {
			return &scheddapi.NamesUpdate{Full: true, Endpoints: all}
		}
		change(list(endpoint(0, "ready", 20000), endpoint(1, "ready", 20001), endpoint(2, "starting", 20002)))
		check("at first", "10.0.0.1:20000", "10.0.0.1:20001")
		change(&scheddapi.NamesUpdate{Endpoints: []*scheddapi.ServiceEndpoint{endpoint(0, "leaving", 20000)}})
		check("one leaves", "10.0.0.1:20001")
		change(&scheddapi.NamesUpdate{Endpoints: []*scheddapi.ServiceEndpoint{endpoint(0, "ready", 20005),
			endpoint(1, "lost", 20001)}})
		check("one is back, one is silent", "10.0.0.1:20001 doubtful", "10.0.0.1:20005")
		change(list(endpoint(1, "ready", 20001)))
		check("a new collector does not know one yet", "10.0.0.1:20001", "10.0.0.1:20005 doubtful")
		change(&scheddapi.NamesUpdate{Removed: []*scheddapi.EndpointKey{endpoint(0, "ready", 1).GetKey()}})
		check("the doubtful one has ended", "10.0.0.1:20001")
		change(list())
		check("a collector without machines", "10.0.0.1:20001 doubtful")
		time.Sleep(doubtTime)
		synctest.Wait()
		check("later")
	})
}

func textOf(b balancer.Backend) string {
	if b.Doubtful {
		return b.Address + " doubtful"
	}
	return b.Address
}

// TestProxyTarget checks how a service and its port are named.
func TestProxyTarget(t *testing.T) {
	for operand, want := range map[string]string{"12.POOL:http": "http", "hub.ann": "",
		"hub.ann:web-admin": "web-admin"} {
		if q, port, err := proxyTarget(operand); err != nil || port != want || !q.GetWatch() {
			t.Errorf("%s: %v, port %q, %v", operand, q, port, err)
		}
	}
	for _, operand := range []string{"hub.ann:", "12"} {
		if _, _, err := proxyTarget(operand); err == nil {
			t.Errorf("%s is taken", operand)
		}
	}
}
