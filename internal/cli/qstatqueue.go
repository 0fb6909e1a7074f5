package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// knownQueues are the queues that there are, by name; and whether that can be told now.
func (l *pbsList) knownQueues() (all []ledger.Queue, known bool) {
	var entries []entered[ledger.Queue]
	if err := l.shown(string(ledger.KindQueue), &entries); err != nil {
		return nil, false
	}
	for _, e := range entries {
		all = append(all, e.Object)
	}
	slices.SortFunc(all, func(a, b ledger.Queue) int { return strings.Compare(a.Name, b.Name) })
	return all, true
}

// knownQueue reports whether there may be a queue of that name.
func (l *pbsList) knownQueue(name string) bool {
	all, known := l.knownQueues()
	return !known || name == noQueue || slices.ContainsFunc(all, func(q ledger.Queue) bool { return q.Name == name })
}

// tallies counts the jobs that have not ended, by a name of theirs: their queue, or their server.
func (l *pbsList) tallies(at string, by func(*wire.JobStatus) string) (map[string]*qstat.Counts, error) {
	counts := map[string]*qstat.Counts{}
	found, err := l.ask(at, nil, false)
	for _, s := range found {
		if final(s) {
			continue
		}
		name := by(s)
		if counts[name] == nil {
			counts[name] = &qstat.Counts{}
		}
		counts[name].Add(pbsState(s), 1)
	}
	return counts, err
}

// queues prints -Q and -q.
func (l *pbsList) queues() (code int, err error) {
	detailed := l.Full
	l.Full, l.Alternate = false, false // jobs are only counted
	wanted, at := map[string]bool{}, ""
	for _, text := range l.operands {
		name, server, directed := strings.Cut(text, "@")
		if directed && server == "" || name == "" && !directed || strings.ContainsAny(text, " \t/:") {
			fmt.Fprintln(l.stderr, "qstat: illegal 'destination' value")
			code = 1
			continue
		}
		wanted[name], at = true, server
	}
	if len(l.operands) > 0 && len(wanted) == 0 {
		return code, nil
	}
	counts, err := l.tallies(at, pbsQueue)
	if err != nil {
		return code, err
	}
	queues, _ := l.knownQueues()
	for _, name := range slices.Sorted(maps.Keys(counts)) { // what jobs are in is one, whoever made it
		if !slices.ContainsFunc(queues, func(q ledger.Queue) bool { return q.Name == name }) {
			queues = append(queues, ledger.Queue{Name: name, Enabled: true, Started: true})
		}
	}
	if len(queues) == 0 {
		queues = []ledger.Queue{{Name: noQueue, Enabled: true, Started: true}}
	}
	for _, text := range l.operands {
		name, _, _ := strings.Cut(text, "@")
		if wanted[name] && name != "" && !slices.ContainsFunc(queues, func(q ledger.Queue) bool { return q.Name == name }) {
			fmt.Fprintf(l.stderr, "qstat: Unknown queue %s\n", text)
			code = pbsUnknownQueue
		}
	}
	if len(wanted) > 0 && !wanted[""] {
		queues = slices.DeleteFunc(queues, func(q ledger.Queue) bool { return !wanted[q.Name] })
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
			if server, err = l.serverName(); err != nil {
				return code, err
			}
		}
		return code, qstat.QueueLimits(l.out, server, rows, l.Gigabytes, l.Megawords)
	}
	return code, qstat.QueueTable(l.out, rows)
}

func queueRow(q *ledger.Queue, counts *qstat.Counts) qstat.QueueRow {
	r := qstat.QueueRow{Name: q.Name, Enabled: q.Enabled, Started: q.Started, Type: "Execution"}
	if counts != nil {
		r.Counts = *counts
	}
	if n := q.Running.Total; n != nil {
		r.MaxRun = strconv.FormatInt(*n, 10)
	}
	if m := q.Most.Memory; m != nil {
		r.Memory = pbsSize(*m)
	}
	if w := q.Most.Walltime; w != nil {
		r.Walltime = clock(time.Duration(*w) * time.Second)
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

func (l *pbsList) fullQueues(queues []ledger.Queue, counts map[string]*qstat.Counts) error {
	l.Full = true
	full, err := l.full()
	if err != nil {
		return err
	}
	for i := range queues {
		o := &qstat.Object{Kind: qstat.Queues, Name: queues[i].Name, Attributes: queueAttributes(&queues[i], counts[queues[i].Name])}
		if err := full.Print(o); err != nil {
			return err
		}
	}
	return full.Close()
}

// queueAttributes are what PBS says of a queue. Counts may be nil: nothing is in it.
func queueAttributes(q *ledger.Queue, counts *qstat.Counts) []qstat.Attribute {
	if counts == nil {
		counts = &qstat.Counts{}
	}
	list := []qstat.Attribute{{Name: "queue_type", Value: "Execution"}}
	if q.Priority != 0 {
		list = append(list, qstat.Attribute{Name: "Priority", Value: fmt.Sprint(q.Priority)})
	}
	list = append(list, qstat.Attribute{Name: "total_jobs", Value: fmt.Sprint(counts.Total())}, qstat.Attribute{Name: "state_count", Value: counts.Text()})
	truth := func(is bool) string { return map[bool]string{true: "True", false: "False"}[is] }
	for _, of := range []struct {
		name string
		list []string
	}{{"acl_user", q.Users}, {"acl_group", q.Groups}} {
		if len(of.list) > 0 {
			list = append(list, qstat.Attribute{Name: of.name + "_enable", Value: "True"}, qstat.Attribute{Name: of.name + "s", Value: strings.Join(of.list, ",")})
		}
	}
	for _, of := range []struct {
		name string
		ledger.Extent
	}{{"resources_max", q.Most}, {"resources_min", q.Least}, {"resources_default", q.Default}} {
		list = append(list, extent(of.name, &of.Extent)...)
	}
	for _, of := range []struct {
		name string
		ledger.Counts
	}{{"max_run", q.Running}, {"max_queued", q.Queued}} {
		if text := limitText(&of.Counts); text != "" {
			list = append(list, qstat.Attribute{Name: of.name, Value: text})
		}
	}
	return append(list, qstat.Attribute{Name: "enabled", Value: truth(q.Enabled)}, qstat.Attribute{Name: "started", Value: truth(q.Started)})
}

// extent are amounts of resources, as attributes of that name.
func extent(name string, e *ledger.Extent) (list []qstat.Attribute) {
	add := func(resource, value string) {
		list = append(list, qstat.Attribute{Name: name, Resource: resource, Value: value})
	}
	if e.Memory != nil {
		add("mem", pbsSize(*e.Memory))
	}
	if e.CPUs != nil {
		add("ncpus", plainCores(*e.CPUs))
	}
	if e.GPUs != nil {
		add("ngpus", plainCount(*e.GPUs))
	}
	if e.Walltime != nil {
		add("walltime", clock(time.Duration(*e.Walltime)*time.Second))
	}
	return list
}

// limitText is a bound in OpenPBS's way of writing it: "[o:PBS_ALL=10],[u:PBS_GENERIC=3]".
func limitText(c *ledger.Counts) string {
	var parts []string
	for _, of := range []struct {
		who string
		n   *int64
	}{{"o:PBS_ALL", c.Total}, {"u:PBS_GENERIC", c.PerUser}, {"g:PBS_GENERIC", c.PerGroup}} {
		if of.n != nil {
			parts = append(parts, fmt.Sprintf("[%s=%d]", of.who, *of.n))
		}
	}
	return strings.Join(parts, ",")
}

// servers prints -B.
func (l *pbsList) servers() (code int, err error) {
	detailed := l.Full
	l.Full, l.Alternate = false, false
	names := l.operands
	if len(names) == 0 {
		name, err := l.serverName()
		if err != nil {
			return 0, err
		}
		names = []string{name}
	}
	var rows []qstat.ServerRow
	for _, name := range names {
		host := func(s *wire.JobStatus) string { _, host, _ := strings.Cut(s.GetId(), "."); return host }
		counts, err := l.tallies(name, host)
		if err == nil {
			err = silence(l.missing)
		}
		if err != nil {
			fmt.Fprintf(l.stderr, "qstat: cannot connect to server %s (errno=15010)\n", name)
			code = pbsSystem
			continue
		}
		row := qstat.ServerRow{Name: name, Status: "Active"}
		if counts[name] != nil {
			row.Counts = *counts[name]
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
	standard := l.defaultQueue()
	for _, r := range rows {
		o := &qstat.Object{Kind: qstat.Servers, Name: r.Name, Attributes: []qstat.Attribute{
			{Name: "server_state", Value: r.Status}, {Name: "server_host", Value: r.Name}, {Name: "scheduling", Value: "True"},
			{Name: "total_jobs", Value: fmt.Sprint(r.Total())}, {Name: "state_count", Value: r.Text()}, {Name: "default_queue", Value: standard},
			{Name: "query_other_jobs", Value: "True"}, {Name: "max_array_size", Value: fmt.Sprint(roost.MaxTasks)}, {Name: "job_history_enable", Value: "True"},
			{Name: "pbs_version", Value: pbsVersion()},
		}}
		if err := full.Print(o); err != nil {
			return err
		}
	}
	return full.Close()
}

// defaultQueue is where jobs go that name none.
func (l *pbsList) defaultQueue() string {
	var settings []entered[ledger.Setting]
	if err := l.shown(string(ledger.KindSetting), &settings); err == nil {
		for _, s := range settings {
			if s.Name == "default_queue" && s.Object.Value != "" {
				return s.Object.Value
			}
		}
	}
	return noQueue
}

// serverName is the schedd that answers.
func (l *pbsList) serverName() (name string, err error) {
	err = l.call.ask(askPatience, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err := s.Health(ctx, &wire.HealthRequest{})
		name = reply.GetName()
		return err
	})
	return name, err
}
