package operate

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// ownTime is a time that a daemon has measured itself since its start, in seconds.
type ownTime struct {
	Name  string  `json:"name"` // of the metric, see roost-metrics(7)
	Count float64 `json:"count"`
	Mean  float64 `json:"mean"`
}

// ownTimeNames are the metrics of loops and commits.
var ownTimeNames = []string{"roost_schedd_commit_seconds", "roost_negotiator_cycle_seconds",
	"roost_negotiator_commit_seconds", "roost_collector_update_seconds"}

// Bounds of a page of metrics.
const (
	metricsTime    = 2 * time.Second
	maxMetricsPage = 8 << 20
)

// readOwnTimes reads what a daemon has measured from its page of metrics. There is none
// where the node file has no address for it, or the page needs a certificate.
func readOwnTimes(ctx context.Context, n *config.Node, d master.DaemonState) []ownTime {
	address := n.MetricsAddress(strings.ReplaceAll(d.Role, "-", "_"), d.Name)
	if address == "" || n.TLS != nil || n.Metrics.TokenFile == "" {
		return nil
	}
	tokens, err := os.ReadFile(n.Metrics.TokenFile)
	token := strings.Fields(string(tokens))
	if err != nil || len(token) == 0 {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	if host == "" || host == "0.0.0.0" || host == "::" {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/metrics",
		nil)
	if err != nil {
		return nil
	}
	request.Header.Set("Authorization", "Bearer "+token[0])
	reply, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return nil
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return nil
	}
	return parseOwnTimes(io.LimitReader(reply.Body, maxMetricsPage))
}

// parseOwnTimes reads sums and counts of histograms without labels from a page in the
// text format of Prometheus.
func parseOwnTimes(page io.Reader) (times []ownTime) {
	values := map[string]float64{}
	for lines := bufio.NewScanner(page); lines.Scan(); {
		if name, value, found := strings.Cut(lines.Text(), " "); found && !strings.HasPrefix(name, "#") {
			values[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	for _, name := range ownTimeNames {
		if count := values[name+"_count"]; count > 0 {
			times = append(times, ownTime{name, count, values[name+"_sum"] / count})
		}
	}
	return times
}
