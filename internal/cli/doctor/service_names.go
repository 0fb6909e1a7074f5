package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const (
	dnsCheck   = "dns"
	namesCheck = "names"
	dnsTimeout = 3 * time.Second
	// how long a name may be on its way before a missing one is reported
	namesPause = time.Second
)

// examineDNS asks the DNS server of this node's collector, over UDP and TCP.
func examineDNS(ctx context.Context, n *config.Node) (findings []checkResult) {
	if n == nil || n.Collector == nil || n.Collector.DNS == nil {
		return nil
	}
	d := n.Collector.DNS
	zone := d.Cell + "." + d.Domain
	for _, addr := range d.Listen {
		f := checkResult{dnsCheck, levelOK, fmt.Sprintf("%s answers for %s, over UDP and TCP", addr, zone), ""}
		for _, network := range []string{"udp", "tcp"} {
			if err := askDNS(ctx, network, addr, zone); err != nil {
				f = checkResult{dnsCheck, levelError, fmt.Sprintf("%s does not answer for %s over %s: %v", addr, zone,
					strings.ToUpper(network), err), "is it another program that has the address? if not, look at " +
					"collector.log in the pool's log directory, and see dns in roost-node(5)"}
				break
			}
		}
		findings = append(findings, f)
	}
	return findings
}

// askDNS asks for a name that no service has. Whoever serves the zone says that there is
// none; others refuse.
func askDNS(ctx context.Context, network, addr, zone string) error {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	r := net.Resolver{PreferGo: true, StrictErrors: true,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	_, err := r.LookupTXT(ctx, "_doctor."+zone+".")
	var why *net.DNSError
	if errors.As(err, &why) && why.IsNotFound {
		return nil
	}
	if err == nil {
		return fmt.Errorf("a name that nobody has: %w", roost.Conflict)
	}
	return err
}

// namedTask is an attempt of a service on a machine.
type namedTask struct {
	machine, job   string
	index, attempt int64
}

// examineNames compares what machines say of the tasks of services with the names that
// the collectors give. A task without a name is one that they refuse.
func examineNames(c *frame.Invocation) []checkResult {
	var missing map[namedTask]bool
	count := 0
	for try := range 2 { // a name may be on its way
		before, err := advertisedTasks(c)
		if err != nil || len(before) == 0 {
			return nil // examineNodes reports that there are no ads
		}
		shown, err := shownTasks(c)
		if err != nil {
			return []checkResult{{namesCheck, levelError, firstLine(frame.ErrorText(err)),
				"services are not found by name; look at collector.log in the pool's log directory"}}
		}
		after, err := advertisedTasks(c)
		if err != nil {
			return nil
		}
		still := missingNames(before, shown, after)
		if try > 0 {
			maps.DeleteFunc(still, func(t namedTask, _ bool) bool { return !missing[t] })
		}
		if missing, count = still, len(shown); len(missing) == 0 || try > 0 {
			break
		}
		select {
		case <-c.Context.Done():
			return nil
		case <-time.After(namesPause):
		}
	}
	return namesFindings(count, missing)
}

// missingNames returns the attempts that machines advertise before and after the names
// were read, and that have none. A newer attempt of the same task has the name instead.
func missingNames(before map[namedTask]bool, shown map[taskOfService]int64,
	after map[namedTask]bool) map[namedTask]bool {
	missing := map[namedTask]bool{}
	for t := range before {
		if newest, ok := shown[taskOfService{t.job, t.index}]; after[t] && (!ok || newest < t.attempt) {
			missing[t] = true
		}
	}
	return missing
}

// taskOfService names a task of a service.
type taskOfService struct {
	job   string
	index int64
}

func namesFindings(count int, missing map[namedTask]bool) (findings []checkResult) {
	if len(missing) == 0 {
		return []checkResult{{namesCheck, levelOK, document.Plural(count, "task") + " of services found by name", ""}}
	}
	byMachine := map[string]int{}
	for t := range missing {
		byMachine[t.machine]++
	}
	for _, machine := range slices.Sorted(maps.Keys(byMachine)) {
		findings = append(findings, checkResult{namesCheck, levelError,
			fmt.Sprintf("the collector refuses the names of %s of services on %s",
				document.Plural(byMachine[machine], "task"), machine),
			"collector.log says why: often a clock is wrong, or the schedd of the job is away or of an older " +
				"release; roost_collector_endpoints_refused_total counts them"})
	}
	return findings
}

// advertisedTasks returns the attempts of services in the ads of machines.
func advertisedTasks(c *frame.Invocation) (map[namedTask]bool, error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine", Constraint: roost.AttrEndpoints + " =!= UNDEFINED",
		Projection: []string{roost.AttrName, roost.AttrEndpoints}})
	if err != nil {
		return nil, err
	}
	all := map[namedTask]bool{}
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			continue // one ad that makes no sense hides no others
		}
		machine, _ := ad.Str(roost.AttrName)
		list, _ := ad.Eval(roost.AttrEndpoints, nil).Elements(nil)
		for _, v := range list {
			if one, ok := v.Ad(); ok {
				t := namedTask{machine: machine}
				t.job, _ = one.Str("Job")
				t.index, _ = one.Int("Index")
				t.attempt, _ = one.Int("Attempt")
				all[t] = true
			}
		}
	}
	return all, nil
}

// shownTasks returns the attempts that have the names of their tasks.
func shownTasks(c *frame.Invocation) (shown map[taskOfService]int64, err error) {
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		shown = map[taskOfService]int64{}
		stream, err := s.Names(ctx, &scheddapi.NamesQuery{})
		if err != nil {
			return err
		}
		for more := true; more; {
			u, err := stream.Recv()
			if err != nil {
				return err
			}
			for _, e := range u.GetEndpoints() {
				shown[taskOfService{e.GetKey().GetJob(), int64(e.GetKey().GetIndex())}] = int64(e.GetAttempt())
			}
			more = u.GetMore()
		}
		return nil
	})
	return shown, err
}
