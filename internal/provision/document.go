package provision

import (
	"time"

	"github.com/roost-batch/roost/internal/provision/plan"
)

// Document is what roost pilots prints of a provisioner.
type Document struct {
	Running   bool               `json:"running"`
	Planned   int64              `json:"planned,omitempty"` // unix seconds, as all times here
	Problem   string             `json:"problem,omitempty"`
	Providers []ProviderDocument `json:"providers"`
	Unmet     []UnmetDocument    `json:"unmet"`
}

// ProviderDocument is a provider in the document.
type ProviderDocument struct {
	Name         string               `json:"name"`
	Kind         string               `json:"kind"`
	State        string               `json:"state"` // "ready", "waiting", "stopped" or "leaving"
	Reason       string               `json:"reason"`
	Walltime     int64                `json:"walltime_seconds"`
	Queued       int                  `json:"queued"`
	Started      int                  `json:"running"`
	Pilots       int                  `json:"pilots"`
	MaxPilots    int                  `json:"max_pilots"`
	NodeHours    float64              `json:"node_hours"`
	MaxNodeHours float64              `json:"max_node_hours,omitempty"`
	Refusals     int                  `json:"refusals"`
	EarlyDeaths  int                  `json:"early_deaths"`
	LastError    string               `json:"last_error,omitempty"`
	StatusError  string               `json:"status_error,omitempty"`
	Excluded     []string             `json:"excluded"`
	NodeAd       string               `json:"node_ad,omitempty"`
	Allocations  []AllocationDocument `json:"allocations"`
}

// AllocationDocument is an allocation in the document.
type AllocationDocument struct {
	Key       string   `json:"key"`
	ID        string   `json:"id,omitempty"`
	State     string   `json:"state"`
	Nodes     int      `json:"nodes"`
	Pilots    int      `json:"pilots"`
	For       string   `json:"for"`
	Asked     int64    `json:"asked"`
	Started   int64    `json:"started,omitempty"`
	Joined    int64    `json:"joined,omitempty"`
	Ended     int64    `json:"ended,omitempty"`
	Outcome   string   `json:"outcome,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	OuterText string   `json:"outer_state,omitempty"`
	Output    string   `json:"output,omitempty"` // file of the outer system with what an early death has printed
	NodeHours float64  `json:"node_hours"`
	Hosts     []string `json:"hosts"`
}

// UnmetDocument says why tasks of a job get no pilot of a provider.
type UnmetDocument struct {
	Job      string `json:"job"`
	Provider string `json:"provider"`
	Tasks    int    `json:"tasks"`
	Reason   string `json:"reason"`
}

// document describes the provisioner.
func (p *Provisioner) document(now time.Time) Document {
	d := Document{Running: true, Planned: unix(p.planned), Providers: []ProviderDocument{}, Unmet: []UnmetDocument{}}
	switch {
	case p.loadErr != nil:
		d.Problem = p.loadErr.Error()
	case p.poolErr != nil:
		d.Problem = "the pool does not answer: " + p.poolErr.Error()
	}
	for _, v := range p.state.Providers {
		d.Providers = append(d.Providers, p.providerDocument(v, now))
	}
	for _, u := range p.last.Unmet {
		d.Unmet = append(d.Unmet, UnmetDocument{u.Job, u.Provider, u.Units, u.Reason})
	}
	return d
}

func (p *Provisioner) providerDocument(v *plan.Provider, now time.Time) ProviderDocument {
	h := &v.History
	d := ProviderDocument{Name: v.Name, Kind: string(v.Kind), State: "ready", Walltime: int64(v.Walltime.Seconds()),
		MaxPilots: v.MaxPilots, MaxNodeHours: v.MaxNodeHours, Refusals: h.Refusals, EarlyDeaths: h.EarlyDeaths,
		LastError: h.LastError, StatusError: h.StatusError, Excluded: []string{}, NodeAd: h.Learnt,
		Allocations: []AllocationDocument{}, NodeHours: p.state.NodeHours(v.Name, now)}
	for _, decision := range p.last.Decisions {
		if decision.Provider == v.Name {
			d.Reason = decision.Reason
		}
	}
	switch {
	case h.Leaving:
		d.State, d.Reason = "leaving", "it is being removed"
	case h.Stopped:
		d.State, d.Reason = "stopped", h.StopReason
	case h.Refusals > 0:
		d.State = "waiting"
	}
	d.Excluded = append(d.Excluded, h.ExcludedHosts(now)...)
	for _, a := range p.state.Of(v.Name, func(*plan.Allocation) bool { return true }) {
		switch a.State {
		case plan.Submitting, plan.Queued:
			d.Queued++
		case plan.Running:
			d.Started++
		}
		d.Pilots += a.Live
		hosts := append([]string{}, a.Hosts...)
		output := ""
		if a.Outcome == plan.EarlyDeath {
			output = directoryOf(&v.Settings) + "/" + outputFile(a.Key)
		}
		d.Allocations = append(d.Allocations, AllocationDocument{Key: a.Key, ID: a.OuterID, State: a.State.String(),
			Nodes: a.Nodes, Pilots: a.Live, For: a.For, Asked: unix(a.Asked), Started: unix(a.Started),
			Joined: unix(a.Joined), Ended: unix(a.EndedAt), Outcome: string(a.Outcome), Reason: a.Reason,
			OuterText: a.OuterText, Output: output, NodeHours: a.UsedHours(now), Hosts: hosts})
	}
	return d
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
