package metrics

// Bounds of the open labels of a collector.
const (
	maxAdTypes     = 15
	maxNodeClasses = 100
)

// Collector is the metrics of a collector.
type Collector struct {
	Expired    *Counter
	UpdateTime *Histogram
	Snapshots  *Published[CollectorSnapshot]

	EndpointsRefused *Counter // endpoints in machine ads that were refused
	Queries          *Counter // DNS queries by outcome, in the order of package collector/dns
}

// NodeStateCount is the number of states of nodes, see NodeState.
const NodeStateCount = 6

// NodeState returns the index of a machine ad's State; an unknown one is the last.
func NodeState(state string) int {
	switch state {
	case "Unclaimed":
		return 0
	case "Claimed":
		return 1
	case "Preempting":
		return 2
	case "Owner":
		return 3
	case "Drained":
		return 4
	}
	return NodeStateCount - 1
}

// CollectorSnapshot is what a collector has at one instant.
type CollectorSnapshot struct {
	Ads            map[string]float64                 // by type
	Nodes          [NodeStateCount]map[string]float64 // by class
	Cores          [AmountStates]map[string]float64   // by class
	Desktops       int
	UsableDesktops int // those on which a task may run now

	RelayedNodes, RelayedConns int // nodes that are reached through the relay here, and their connections
}

// NewCollector registers the metrics of a collector. With a nil registry nothing is
// counted.
func NewCollector(r *Registry) *Collector {
	c := &Collector{
		Expired: r.Counter("ads_expired_total", "Ads that were removed because nobody renewed them."),
		UpdateTime: r.Histogram("update_seconds",
			"Time from the arrival of an ad to its answer, the wait for the collector included.", fastBuckets),
	}
	c.EndpointsRefused = r.Counter("endpoints_refused_total",
		"Endpoints in machine ads that were refused, because they were not in order, not of the machine, or without a "+
			"valid signature of the job's schedd.")
	c.Queries = r.Counter("dns_queries_total", "DNS queries by what happened to them.", Label{Name: "outcome",
		Values: []string{"answered", "no_data", "no_name", "refused", "limited"}})
	c.Snapshots = newCollectorSnapshots(r)
	r.seal()
	return c
}

func newCollectorSnapshots(r *Registry) *Published[CollectorSnapshot] {
	ads := r.Gauge("ads", "Ads by type.", Label{Name: "type", Most: maxAdTypes})
	class := Label{Name: "class", Most: maxNodeClasses}
	nodes := r.Gauge("nodes", "Execute nodes by state and class.", Label{Name: "state",
		Values: []string{"unclaimed", "claimed", "preempting", "owner", "drained", OtherValue}}, class)
	cores := r.Gauge("cores", "Cores of execute nodes by state and class.", amountLabel(), class)
	desktops := r.Gauge("desktops", "Execute nodes with an owner, by whether they may be used now.",
		Label{Name: "lent", Values: []string{"no", "yes"}})
	relayedNodes := r.Gauge("relayed_nodes", "Nodes that nobody can dial, and that are reached through the relay here.")
	relayedConns := r.Gauge("relayed_connections", "Connections to nodes through the relay here.")
	return newDaemonState(r, func(to *Reading, s *CollectorSnapshot) {
		to.Set(relayedNodes, float64(s.RelayedNodes))
		to.Set(relayedConns, float64(s.RelayedConns))
		to.SetLargest(ads, s.Ads)
		labels := classLabels(s) // the same for all states
		for i, byClass := range s.Nodes {
			to.SetNamed(nodes, byClass, labels, i)
		}
		for i, byClass := range s.Cores {
			to.SetNamed(cores, byClass, labels, i)
		}
		to.Set(desktops, float64(s.Desktops-s.UsableDesktops), 0)
		to.Set(desktops, float64(s.UsableDesktops), 1)
	})
}

// classLabels returns the labels of the classes with most nodes.
func classLabels(s *CollectorSnapshot) map[string]string {
	nodes := map[string]float64{}
	for _, byClass := range s.Nodes {
		for class, n := range byClass {
			nodes[class] += n
		}
	}
	return labelsOfLargest(nodes, maxNodeClasses)
}
