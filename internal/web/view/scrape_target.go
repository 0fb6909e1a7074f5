package view

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// maxScrapeTargets bounds a list for Prometheus. A longer one is refused as a whole, and
// Prometheus goes on with the last one. What a part of it lacked would be scraped no
// more.
const maxScrapeTargets = 20_000

func scrapeListError() error {
	return fmt.Errorf("%w: there are more than %d targets: ask for those of one owner, name or port",
		roost.Exhausted, maxScrapeTargets)
}

// NameTargets lists the tasks of services for Prometheus: a target for each port.
func NameTargets(c *route.Call) (any, error) {
	f, err := nameFilterOf(c)
	if err != nil {
		return nil, err
	}
	port, state := c.QueryValue("port"), c.QueryValue("state")
	all := []document.ScrapeTarget{}
	err = readNames(c, f, func(e document.Endpoint) error {
		if state != "" && state != e.State {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(e.Ports)) {
			t, ok := document.TargetOf(e, name)
			if !ok || port != "" && port != name {
				continue
			}
			if len(all) >= maxScrapeTargets {
				return scrapeListError()
			}
			maps.Copy(t.Labels, map[string]string{"__meta_roost_state": e.State, "__meta_roost_port": name,
				"__meta_roost_node": e.Machine, "__meta_roost_attempt": strconv.FormatUint(uint64(e.Attempt), 10)})
			all = append(all, t)
		}
		return nil
	})
	slices.SortFunc(all, compareTargets)
	return all, err
}

func compareTargets(a, b document.ScrapeTarget) int { return cmp.Compare(a.Targets[0], b.Targets[0]) }

// DaemonTargets lists the daemons of the pool that serve metrics. Their ports are in the
// ads of their nodes. An ad is believed about ports only, as Prometheus sends a token to
// the targets: the host is the node whose certificate the ad came with.
type DaemonTargets struct{ Node string } // the web daemon's own node

// List is the view.
func (d DaemonTargets) List(c *route.Call) (any, error) {
	daemon := c.QueryValue("daemon")
	all := []document.ScrapeTarget{}
	seen := map[string]bool{}
	err := ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		for _, kind := range []string{"Negotiator", "Scheduler", "Machine"} {
			stream, err := s.Ads(ctx, &wire.AdQuery{Type: kind, Limit: maxNodes,
				Projection: []string{roost.AttrName, roost.AttrMachine, roost.AttrMetricsPorts}})
			err = drain(stream, err, func(text *wire.AdText) error {
				ad, err := classad.Parse(text.GetAd())
				if err != nil {
					return nil // one ad that makes no sense hides no others
				}
				for _, t := range d.targetsOf(ad) {
					if seen[t.Targets[0]] || daemon != "" && t.Labels["daemon"] != daemon {
						continue
					}
					if len(all) >= maxScrapeTargets {
						return scrapeListError()
					}
					seen[t.Targets[0]] = true
					all = append(all, t)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	slices.SortFunc(all, compareTargets)
	return all, err
}

// targetsOf returns the targets of one ad. Those that only their own host reaches are
// left out unless that is the host of this daemon.
func (d DaemonTargets) targetsOf(ad *classad.Ad) (all []document.ScrapeTarget) {
	node, _ := ad.Str(roost.AttrMachine)
	if node == "" || len(node) > maxNameQuery || strings.ContainsAny(node, "/@ \t\r\n") {
		return nil
	}
	for _, p := range config.MetricsPortsOf(ad) {
		host, scheme := node, "http"
		if p.IsLocal {
			if node != d.Node {
				continue
			}
			host = "127.0.0.1"
		}
		if p.IsTLS {
			scheme = "https"
		}
		all = append(all, document.ScrapeTarget{
			Targets: []string{net.JoinHostPort(host, strconv.Itoa(int(p.Port)))},
			Labels:  map[string]string{"__scheme__": scheme, "node": node, "daemon": p.Daemon}})
	}
	return all
}
