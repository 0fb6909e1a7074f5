package pbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
)

// qmgrRun runs a command against the pool in dir, and writes it down with what it prints.
func qmgrRun(t *testing.T, dir, stdin, line string, args ...string) string {
	t.Helper()
	a, stdout, stderr := newPBSApp(t, dir)
	a.Stdin = strings.NewReader(stdin)
	code := a.Run(t.Context(), append(strings.Fields(line), args...))
	var b strings.Builder
	fmt.Fprintf(&b, "$ %s\n", strings.Join(append([]string{line}, args...), " "))
	for l := range strings.Lines(stdin) {
		b.WriteString("< " + l)
	}
	b.WriteString(stdout.String())
	for l := range strings.Lines(stderr.String()) {
		b.WriteString("! " + l)
	}
	if code != 0 {
		fmt.Fprintf(&b, "[exit status %d]\n", code)
	}
	return b.String() + "\n"
}

const setupCommands = `# A routing queue before two others.
create queue in queue_type = route, enabled = True, started = True
set queue in route_destinations = "short,long", route_held_jobs = True
create queue short \
    enabled = True, started = True
set queue short resources_max.walltime = 1:00:00, resources_default.ncpus = 2, from_route_only = True
set queue short max_run = "[u:PBS_GENERIC=3],[u:ada=10]"
set queue short max_run_res.mem = [p:sci=64gb]
set queue short priority = 160
create queue long
set queue long acl_users = "-eve@*.example.org,+"
set queue long acl_user_enable = True
set queue long max_queuable = 100, max_user_run = 5
set server default_queue = in, max_array_size = 5000, resources_default.mem = 512mb
set server max_queued = [g:guests=10]
set queue short max_run_soft = "[u:PBS_GENERIC=1],[p:sci=4]", max_run_res_soft.ncpus = [u:ada=8]
set server max_user_run_soft = 3, max_user_res.ncpus = 16, max_group_res_soft.mem = 1tb
create resource Qlist type=string, flag=h
set queue long default_chunk.Qlist = long
create resource matlab type=long, flag=q; create resource fpga type = boolean, flag = h # of machines
set server resources_available.matlab = 12
set queue long resources_max.cput = 10:00:00, resources_default.vmem = 4gb, resources_max.pmem=1gb, resources_default.Matlab = 1, default_chunk.file = 10gb
set server resources_max.matlab = 6, resources_min.pcput = 5
set server managers += ann@*, operators = "bob@n1,cid@*"
set server acl_user_enable = True, acl_users = "-eve@*,+", comment = "new machines; soon"
`

// TestQmgr holds what qmgr prints, and that its print makes the same settings in an empty
// pool.
func TestQmgr(t *testing.T) {
	f := clitest.SampleJobs()
	dir := f.Serve(t)
	var b strings.Builder
	b.WriteString(qmgrRun(t, dir, setupCommands, "qmgr"))
	for _, c := range []string{
		"print server", "list queue short", "list queue short,long enabled,max_run", "list server max_array_size",
		"list server total_jobs,state_count", "print queue long max_queued", "list queue nowhere", "create queue short",
		"set queue nowhere enabled=True",
		"set queue short colour = blue", "set queue short resources_min.walltime = 2:00:00",
		"set queue short resources_max.mem = lots", "set server default_queue = nowhere",
		"set server query_other_jobs = False",
		"unset queue short resources_max, Priority", "set queue short max_run -= [u:ada]", "print queue short",
		"set queue short enabled", "frob queue short", "create resource lic type=long",
		"delete queue in", "delete queue express", "delete queue", "set queue Priority = 3", "set node state = offline",
		"unset queue @default from_route_only", "set queue @default from_route_only = False", "frob", "list",
		"list nothing", "create queue express", "delete queue express",
		"set node n2 state = offline, comment = 'new memory'", "list node n2", "print node n2",
		"set node n2 state -= offline", "set node n2 comment = 'fan is loud'", "list node n2", "print node n2",
		"unset node n2 comment", "print node n2", "set node n9 state=offline",
		"set node n2 resources_available.ncpus = 3", "delete node n2", "help set", "import hook x", "active",
		"list resource", "print resource fpga", "create resource mem type=size",
		"create resource scratch type=size,flag=nh", "create resource odd type=number", "set resource matlab flag += m",
		"list resource matlab flag", "set resource matlab colour = red", "delete resource matlab",
		"delete resource nothing", "create resource tmp; delete resource tmp", "set resource mem type=long",
		"set server resources_available.fpga = 1", "set server resources_available.tapes = 1",
		"set server resources_available.ncpus = 1", "set server resources_available.matlab += 3",
		"list server resources_available",
		"set server managers = root", "set server managers -= ann@*", "set server operators += ann@*",
		"list server managers,operators", "unset server operators", "list server operators",
		"set server scheduling = False", "list server scheduling", "list sched", "print sched",
		"set sched scheduling = True", "set sched throughput_mode = True", "create sched b",
		"set server node_fail_requeue = 310", "set server colour = blue", "set queue short route_retry_time = 30",
		"set node n2 sharing = force_excl", "set node n2 colour = red",
		"set queue long resources_max.matlab += 2", "set queue long resources_available.ncpus = 64",
		"set server resources_available.mem = 1tb", "list queue long max_run_res", "list server max_run_res",
		"unset queue long resources_available.ncpus",
		"list queue long max_run_res", "set queue long resources_available.walltime = 5",
		"set server resources_available.nodect = 5", "set server keep_completed = 300",
		"set queue long resources_max.fpga = True", "set queue long resources_default.fpga = maybe",
		"set queue long resources_default.fpga = t", "list queue long default_chunk,resources_default",
		"set queue long resources_max.tapes = 1", "unset queue long resources_default.vmem, resources_default.matlab",
		"set queue long resources_min.cput = 11:00:00", "set queue long resources_max.vmem = much",
		"list queue long resources_max,resources_default",
		"list hook", "create hook h", "print server colour", "set hook h enabled = True",
		"export hook h application/x-python default",
	} {
		b.WriteString(qmgrRun(t, dir, "", "qmgr -c", c))
	}
	b.WriteString(qmgrRun(t, dir, "active queue short,long\nset queue started = False\nlist queue short "+
		"started\nactive\nquit\nlist queue\n", "qmgr -e"))
	b.WriteString(qmgrRun(t, dir, "set queue a b=c\nlist queue short started\n", "qmgr -a"))
	b.WriteString(qmgrRun(t, dir, "set queue a b=c\nlist queue short started\n", "qmgr -z"))
	b.WriteString(qmgrRun(t, dir, "delete queue short\nset queue a\n", "qmgr -n"))
	b.WriteString(qmgrRun(t, dir, "", "qmgr -x"))
	for _, line := range []string{"qdisable short nowhere", "qstop long@pool", "qenable short", "qstart long",
		"qstart"} {
		b.WriteString(qmgrRun(t, dir, "", line))
	}
	f.Mu.Lock()
	f.DeniesChanges = true
	f.Mu.Unlock()
	b.WriteString(qmgrRun(t, dir, "", "qmgr -c", "set queue short enabled=False"))
	b.WriteString(qmgrRun(t, dir, "", "qdisable short"))
	clitest.CompareGolden(t, "qmgr", strings.ReplaceAll(b.String(), dir, "/pool"))

	all := qmgrRun(t, dir, "", "qmgr -c", "print server")
	other := clitest.SampleJobs()
	elsewhere := other.Serve(t)
	_, commands, _ := strings.Cut(all, "\n")
	if got := qmgrRun(t, elsewhere, commands, "qmgr"); strings.Contains(got, "! ") {
		t.Errorf("what is printed is refused: %s", got)
	}
	if got := qmgrRun(t, elsewhere, "", "qmgr -c", "print server"); got != all {
		t.Errorf("got\n%s\nof\n%s", got, all)
	}
}
