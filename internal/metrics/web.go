package metrics

import "time"

// webClasses are the classes of requests to the web daemon, by their numbers there. The
// first is of requests that no route takes.
var webClasses = [...]string{"none", "reads", "writes", "expensive", "logins", "files", "streams", "simulations",
	"terminals"}

// loginWays are the ways to log in to the web daemon.
var loginWays = [...]string{"link", "key", "oidc", "password", "token"}

// Web is the metrics of a web daemon.
type Web struct {
	RequestTime    *Histogram // by class and status
	ActiveRequests *LiveGauge
	Streams        *LiveGauge
	Resyncs        *Counter
	Limited        *Counter // by class
	LoginFailures  *Counter // by way
}

// NewWeb registers the metrics of a web daemon. With a nil registry nothing is counted.
func NewWeb(r *Registry) *Web {
	var short []string // the classes of requests that end by themselves
	for _, class := range webClasses {
		if class != "streams" && class != "terminals" {
			short = append(short, class)
		}
	}
	w := &Web{
		RequestTime: r.Histogram("http_seconds", "Time to answer a request; streams and terminals are left out.",
			fastBuckets, Label{Name: "class", Values: short},
			Label{Name: "status", Values: []string{"2xx", "3xx", "4xx", "5xx"}}),
		ActiveRequests: r.LiveGauge("in_flight",
			"Requests that are being answered; streams and terminals are left out."),
		Streams: r.LiveGauge("streams", "Open streams of changes and outputs, and open terminals."),
		Resyncs: r.Counter("resyncs_total",
			"Times that a browser was told to read everything again, because it had missed changes."),
		Limited: r.Counter("limited_total", "Requests that were refused because of a limit, by class.",
			Label{Name: "class", Values: webClasses[:]}),
		LoginFailures: r.Counter("login_failures_total", "Logins and API tokens that were refused, by way.",
			Label{Name: "way", Values: loginWays[:]}),
	}
	r.seal()
	return w
}

// ObserveRequest counts an answer, by the number of its class of requests and its status.
func (w *Web) ObserveRequest(took time.Duration, class, status int) {
	switch webClasses[min(max(class, 0), len(webClasses)-1)] {
	case "streams", "terminals":
		return
	case "simulations":
		class-- // streams have no histogram
	}
	w.RequestTime.Observe(took, class, status/100-2)
}

// CountLoginFailure counts a refused login. An unknown way counts as the last.
func (w *Web) CountLoginFailure(way string) {
	at := len(loginWays) - 1
	for i, name := range loginWays {
		if name == way {
			at = i
		}
	}
	w.LoginFailures.Inc(at)
}
