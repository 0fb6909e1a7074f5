package document

import (
	"strconv"
	"strings"
)

// ScrapeTarget is an element of what Prometheus reads from files of targets and over
// HTTP. It drops the labels that begin with __meta_ when it has relabelled the target.
type ScrapeTarget struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// TargetOf returns the target for a port of a task, false if the task has no such port.
func TargetOf(e Endpoint, port string) (ScrapeTarget, bool) {
	number, ok := e.Ports[port]
	if !ok {
		return ScrapeTarget{}, false
	}
	host := e.Address
	if strings.Contains(host, ":") { // IPv6
		host = "[" + host + "]"
	}
	return ScrapeTarget{Targets: []string{host + ":" + strconv.FormatUint(uint64(number), 10)},
		Labels: map[string]string{"job_id": e.Job, "name": e.Name, "user": e.Owner,
			"index": strconv.FormatUint(uint64(e.Index), 10), "revision": strconv.FormatUint(e.Revision, 10)}}, true
}
