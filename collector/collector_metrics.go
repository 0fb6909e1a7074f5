package collector

import (
	"context"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/metrics"
)

// publishMetrics publishes snapshots until ctx ends, while somebody reads them. The owner
// of the store only lists the ads, which never change: to count ten thousand machines
// takes tens of milliseconds.
func (o *storeLoop) publishMetrics(ctx context.Context) {
	o.metrics.Snapshots.Run(ctx, time.Second, func() metrics.CollectorSnapshot {
		var ads []*adstore.StoredAd
		if o.runInLoop(ctx, func() { ads = o.store.List("") }) != nil {
			return metrics.CollectorSnapshot{}
		}
		s := metricsSnapshot(ads)
		s.RelayedNodes, s.RelayedConns = o.relay.Counts()
		return s
	})
}

// metricsSnapshot counts ads.
func metricsSnapshot(ads []*adstore.StoredAd) metrics.CollectorSnapshot {
	s := metrics.CollectorSnapshot{Ads: map[string]float64{}}
	for i := range s.Nodes {
		s.Nodes[i] = map[string]float64{}
	}
	for i := range s.Cores {
		s.Cores[i] = map[string]float64{}
	}
	for _, entry := range ads {
		s.Ads[entry.Type]++
		if entry.Type == "Machine" {
			countMachine(&s, entry.Ad)
		}
	}
	return s
}

// countMachine counts an execute node and its cores.
func countMachine(s *metrics.CollectorSnapshot, ad *classad.Ad) {
	state, _ := ad.Str(roost.AttrState)
	class := nodeClass(ad)
	s.Nodes[metrics.NodeState(state)][class]++
	var cores [metrics.AmountStates]float64
	total, _ := ad.Real(roost.AttrTotalCpus)
	free, _ := ad.Real(roost.AttrCpus)
	metrics.AddAmounts(&cores, state, total, free)
	for i, n := range cores {
		if n > 0 {
			s.Cores[i][class] += n
		}
	}
	if _, owned := ad.Lookup(roost.AttrOwnerBusy); owned {
		s.Desktops++
		if state != "Owner" && state != "Drained" {
			s.UsableDesktops++
		}
	}
}

// nodeClassAttr is an attribute that administrators may give machines for the metrics.
const nodeClassAttr = "NodeClass"

// nodeClass returns the class of an execute node for the metrics. It is the attribute
// NodeClass, else the model of the node's first GPU, else the architecture.
func nodeClass(ad *classad.Ad) string {
	if class, ok := ad.Str(nodeClassAttr); ok && class != "" {
		return class
	}
	if models, _ := ad.Strings(roost.AttrGpuModels); len(models) > 0 {
		return models[0]
	}
	if arch, ok := ad.Str(roost.AttrArch); ok && arch != "" {
		return arch
	}
	return metrics.OtherValue
}
