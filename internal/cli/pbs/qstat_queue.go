package pbs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// knownQueues are the queues that there are, by name; and whether that can be told now.
func (l *pbsList) knownQueues() (all []ledger.QueuePolicy, known bool) {
	var entries []admin.AttributedObject[ledger.QueuePolicy]
	if err := admin.CellObjects(l.Invocation, string(ledger.KindQueue), &entries); err != nil {
		return nil, false
	}
	for _, e := range entries {
		all = append(all, e.Object)
	}
	all = append(all, l.reservationQueues(all)...)
	slices.SortFunc(all, func(a, b ledger.QueuePolicy) int { return strings.Compare(a.Name, b.Name) })
	return all, true
}

// reservationQueues are the reservations that are not over, as PBS has them: queues, that
// start their jobs while they hold.
func (l *pbsList) reservationQueues(others []ledger.QueuePolicy) (all []ledger.QueuePolicy) {
	entries, _, err := admin.Reservations(l.Invocation)
	if err != nil {
		return nil // the queues are known all the same
	}
	for i := range entries {
		r := &entries[i].Object
		if isOther := slices.ContainsFunc(others, func(q ledger.QueuePolicy) bool {
			return q.Name == r.Name
		}); !isOther && l.Now().Before(r.Until) {
			all = append(all, ledger.QueuePolicy{Name: r.Name, Enabled: !r.Deleting,
				Started: !r.Deleting && !l.Now().Before(r.From)})
		}
	}
	return all
}

// mayBeQueue reports whether there may be a queue of that name.
func (l *pbsList) mayBeQueue(name string) bool {
	all, known := l.knownQueues()
	return !known || name == roost.DefaultQueueName || slices.ContainsFunc(all, func(q ledger.QueuePolicy) bool {
		return q.Name == name
	})
}

// countJobs counts the jobs that have not ended, by a name of theirs: their queue, or
// their server.
func (l *pbsList) countJobs(at string,
	by func(*scheddapi.JobStatus) string) (counts map[string]*qstat.StateCounts, missing []frame.UnreachableSchedd,
	err error) {
	counts = map[string]*qstat.StateCounts{}
	missing, err = l.queryServer(at, &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Table: true},
		func(s *scheddapi.JobStatus) error {
			name := by(s)
			if counts[name] == nil {
				counts[name] = &qstat.StateCounts{}
			}
			counts[name].Add(pbsState(s), 1)
			return nil
		})
	return counts, missing, err
}

// queues prints -Q and -q.
func (l *pbsList) queues() (code int, err error) {
	detailed := l.Full
	l.Full, l.Alternate = false, false // jobs are only counted
	wanted, at := map[string]bool{}, ""
	for _, text := range l.operands {
		name, server, directed := strings.Cut(text, "@")
		if directed && server == "" || name == "" && !directed || strings.ContainsAny(text, " \t/:") {
			fmt.Fprintln(l.Stderr, "qstat: illegal 'destination' value")
			code = 1
			continue
		}
		wanted[name], at = true, server
	}
	if len(l.operands) > 0 && len(wanted) == 0 {
		return code, nil
	}
	counts, missing, err := l.countJobs(at, pbsQueue)
	l.PrintUnreachable(missing)
	if errors.Is(err, roost.NotFound) {
		return l.unreachable(at, err), nil
	}
	if err != nil {
		return code, err
	}
	queues, _ := l.knownQueues()
	for _, name := range slices.Sorted(maps.Keys(counts)) { // what jobs are in is one, whoever made it
		if !slices.ContainsFunc(queues, func(q ledger.QueuePolicy) bool { return q.Name == name }) {
			queues = append(queues, ledger.QueuePolicy{Name: name, Enabled: true, Started: true})
		}
	}
	if len(queues) == 0 {
		queues = []ledger.QueuePolicy{{Name: roost.DefaultQueueName, Enabled: true, Started: true}}
	}
	for _, text := range l.operands {
		name, _, _ := strings.Cut(text, "@")
		if wanted[name] && name != "" && !slices.ContainsFunc(queues, func(q ledger.QueuePolicy) bool {
			return q.Name == name
		}) {
			fmt.Fprintf(l.Stderr, "qstat: Unknown queue %s\n", text)
			code = pbsframe.UnknownQueue
		}
	}
	if len(wanted) > 0 && !wanted[""] {
		queues = slices.DeleteFunc(queues, func(q ledger.QueuePolicy) bool { return !wanted[q.Name] })
	}
	if detailed {
		return code, l.fullQueues(queues, counts)
	}
	rows := make([]qstat.QueueRow, len(queues))
	for i := range queues {
		rows[i] = queueRow(&queues[i], counts[queues[i].Name])
	}
	switch {
	case len(rows) == 0:
		return code, nil
	case l.Limits:
		server := at
		if server == "" {
			if server, err = l.ServerName(); err != nil {
				return code, err
			}
		}
		return code, qstat.QueueLimits(l.out, server, rows, l.Gigabytes, l.Megawords)
	}
	return code, qstat.QueueTable(l.out, rows)
}

func queueRow(q *ledger.QueuePolicy, counts *qstat.StateCounts) qstat.QueueRow {
	r := qstat.QueueRow{Name: q.Name, Enabled: q.Enabled, Started: q.Started, Type: "Execution"}
	if q.Routing {
		r.Type = "Route"
	}
	if counts != nil {
		r.StateCounts = *counts
	}
	if n := q.Running.Total; n != nil {
		r.MaxRun = strconv.FormatInt(*n, 10)
	}
	if m := q.MaxResources.Memory; m != nil {
		r.Memory = pbsSize(*m)
	}
	if w := q.MaxResources.Walltime; w != nil {
		r.Walltime = pbsframe.ClockText(time.Duration(*w) * time.Second)
	}
	return r
}

// pbsSize is an amount in the largest unit of PBS in which it is whole.
func pbsSize(b roost.Bytes) string {
	for _, unit := range []struct {
		of   roost.Bytes
		name string
	}{{roost.GiB, "gb"}, {roost.MiB, "mb"}, {roost.KiB, "kb"}} {
		if b >= unit.of && b%unit.of == 0 {
			return fmt.Sprintf("%d%s", b/unit.of, unit.name)
		}
	}
	return fmt.Sprintf("%db", b)
}

func (l *pbsList) fullQueues(queues []ledger.QueuePolicy, counts map[string]*qstat.StateCounts) error {
	l.Full = true
	full, err := l.full()
	if err != nil {
		return err
	}
	for i := range queues {
		o := &qstat.Object{Kind: qstat.Queues, Name: queues[i].Name,
			Attributes: queueAttributes(&queues[i], counts[queues[i].Name])}
		if err := full.Print(o); err != nil {
			return err
		}
	}
	return full.Close()
}

// queueAttributes are what PBS says of a queue. Counts may be nil: nothing is in it.
func queueAttributes(q *ledger.QueuePolicy, counts *qstat.StateCounts) []qstat.ObjectAttribute {
	if counts == nil {
		counts = &qstat.StateCounts{}
	}
	var list []qstat.ObjectAttribute
	counted := []qstat.ObjectAttribute{{Name: "total_jobs", Value: fmt.Sprint(counts.Total())},
		{Name: "state_count", Value: counts.Text()}}
	for _, v := range qmgr.JoinedAttributes(qmgr.Attributes(&qmgr.Object{Queue: q})) {
		if !slices.Contains([]string{"queue_type", "band", "Priority"}, v.Name) {
			list, counted = append(list, counted...), nil
		}
		list = append(list, qstat.ObjectAttribute{Name: v.Name, Resource: v.Resource, Value: v.Text})
	}
	return list
}

// servers prints -B.
func (l *pbsList) servers() (code int, err error) {
	detailed := l.Full
	l.Full, l.Alternate = false, false
	names := l.operands
	if len(names) == 0 {
		name, err := l.ServerName()
		if err != nil {
			return 0, err
		}
		names = []string{name}
	}
	var rows []qstat.ServerRow
	for _, name := range names {
		host := func(s *scheddapi.JobStatus) string { _, host, _ := strings.Cut(s.GetId(), "."); return host }
		counts, missing, err := l.countJobs(name, host)
		if err == nil {
			err = frame.UnreachableError(missing)
		}
		if err != nil {
			code = l.unreachable(name, err)
			continue
		}
		row := qstat.ServerRow{Name: name, Status: "Active"}
		if counts[name] != nil {
			row.StateCounts = *counts[name]
		}
		rows = append(rows, row)
	}
	switch {
	case detailed:
		return code, l.fullServers(rows)
	case len(rows) > 0:
		return code, qstat.ServerTable(l.out, rows)
	}
	return code, nil
}

func (l *pbsList) fullServers(rows []qstat.ServerRow) error {
	l.Full = true
	full, err := l.full()
	if err != nil {
		return err
	}
	pool, err := (&qmgrSession{Invocation: l.Invocation}).pool()
	if err != nil {
		pool = &qmgr.Object{MaxTasks: roost.MaxTasks} // nobody says what is set
	}
	pool.DefaultQueue = cmp.Or(pool.DefaultQueue, roost.DefaultQueueName)
	for _, r := range rows {
		o := &qstat.Object{Kind: qstat.Servers, Name: r.Name, Attributes: []qstat.ObjectAttribute{
			{Name: "server_state", Value: r.Status}, {Name: "server_host", Value: r.Name},
			{Name: "total_jobs", Value: fmt.Sprint(r.Total())}, {Name: "state_count", Value: r.Text()},
		}}
		for _, v := range qmgr.JoinedAttributes(qmgr.Attributes(pool)) {
			o.Attributes = append(o.Attributes,
				qstat.ObjectAttribute{Name: v.Name, Resource: v.Resource, Value: v.Text})
		}
		version := pbsframe.Version()
		if l.torqueAttributes() {
			version = pbsframe.RoostVersion()
		}
		o.Attributes = append(o.Attributes, qstat.ObjectAttribute{Name: "pbs_version", Value: version})
		if err := full.Print(o); err != nil {
			return err
		}
	}
	return full.Close()
}

// unreachable says why a server cannot be asked, and returns the exit status for it.
// There is none of a name that nobody knows.
func (l *pbsList) unreachable(name string, err error) (code int) {
	errno, code := 15010, pbsframe.SystemError
	if errors.Is(err, roost.NotFound) {
		fmt.Fprintln(l.Stderr, "Unknown Host.")
		errno, code = 15008, pbsframe.Unconnected
	}
	fmt.Fprintf(l.Stderr, "qstat: cannot connect to server %s (errno=%d)\n", name, errno)
	return code
}
