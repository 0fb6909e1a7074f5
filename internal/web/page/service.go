package page

import (
	"fmt"
	"net"
	"strconv"

	"github.com/roost-batch/roost/internal/document"
)

// healthParts are the tasks of a service by how they are, as parts of a bar.
func healthParts(s *document.Service) (parts []BarPart) {
	fill := map[string]string{"ready": "fill-ok", "starting": "fill-running", "unready": "fill-bad",
		"leaving": "fill-warn", "lost": "fill-bad", "waiting": "fill-warn", "absent": "fill-idle"}
	word := map[string]string{"waiting": "waiting for a restart", "absent": "not started"}
	for _, c := range s.Counts() {
		label := c.Name
		if word[c.Name] != "" {
			label = word[c.Name]
		}
		parts = append(parts, BarPart{float64(c.Tasks), fill[c.Name], fmt.Sprintf("%d %s", c.Tasks, label)})
	}
	return parts
}

// updateParts are the tasks of a service by how far their update is, as parts of a bar.
func updateParts(u *document.Update) (parts []BarPart) {
	for _, s := range []struct{ name, fill string }{{"new", "fill-ok"}, {"settling", "fill-running"},
		{"unready", "fill-warn"}, {"starting", "fill-running"}, {"resizing", "fill-running"},
		{"waiting", "fill-warn"}, {"stopping", "fill-warn"},
		{"failed", "fill-bad"}, {"old", "fill-idle"}, {"excluded", "fill-free"}} {
		if n := u.Tasks[s.name]; n > 0 {
			parts = append(parts, BarPart{float64(n), s.fill, fmt.Sprintf("%d %s", n, s.name)})
		}
	}
	return parts
}

// hostPort writes an address with a port.
func hostPort(host string, port uint32) string {
	return net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10))
}
