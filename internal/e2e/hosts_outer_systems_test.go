package e2e

import (
	"os"
	"path/filepath"
	"strings"
)

// outerSystem is a batch system of others, as it is in a Debian behind the router, with
// 12 slots. Its lines are of a shell.
type outerSystem struct {
	kind            string
	start           string // as root: starts it
	stopController  string // as root: ends the daemon with its queue, and nothing else
	startController string
	queue           string // as the user: prints a line for each job that has not ended
	names           string // as root: prints the names of all jobs there have been
}

// sharedStart begins the start of each system. It makes the user's directory and lets the
// user in as on a login node, by ssh.
const sharedStart = `set -e
printf '127.0.0.1 localhost\n192.168.77.2 peers n1 n2 n3\n' > /etc/hosts
mkdir -p /run/sshd /home/bench/.ssh && cp /opt/test/key.pub /home/bench/.ssh/authorized_keys
chown -R bench: /home/bench && chmod 755 /home/bench && chmod 700 /home/bench/.ssh && usermod -p '*' bench
/usr/sbin/sshd -o UsePAM=no -o PidFile=/run/sshd.pid -o MaxStartups=100
`

// slurmNodes are three nodes on one host. Their daemons differ in the name that they take
// for their host's.
const slurmNodes = `NodeName=n[1-3] NodeAddr=192.168.77.2 Port=[17001-17003] CPUs=4 RealMemory=5000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
JobCompType=jobcomp/filetxt
JobCompLoc=/var/log/slurm/jobcomp
SrunPortRange=18000-18999
KillWait=30
`

func slurmOuter() outerSystem {
	const controller = "slurmctld"
	return outerSystem{kind: "slurm",
		start: `cd /var; rm -rf spool/slurmctld log/slurm; mkdir -p spool/slurmctld log/slurm /run/munge log/munge lib/munge
chown slurm spool/slurmctld log/slurm; chown munge: /run/munge log/munge lib/munge; chmod 755 /run/munge
install -m 600 -o munge /opt/test/munge.key /etc/munge/munge.key
runuser -u munge -- munged --force
sed -e 's,SlurmdSpoolDir=.*,SlurmdSpoolDir=/var/spool/slurmd.%n,' -e 's,SlurmdPidFile=.*,SlurmdPidFile=/run/slurmd.%n.pid,' \
	-e 's,SlurmdLogFile=.*,SlurmdLogFile=/var/log/slurm/slurmd.%n.log,' /opt/test/slurm.conf > /etc/slurm/slurm.conf
cat /opt/test/nodes.conf >> /etc/slurm/slurm.conf
echo CgroupPlugin=disabled > /etc/slurm/cgroup.conf
touch /var/log/slurm/jobcomp; chown slurm /var/log/slurm/jobcomp
slurmctld
for n in n1 n2 n3; do unshare --uts sh -c "hostname $n; exec slurmd"; done
for i in $(seq 100); do [ "$(sinfo -h -N -t idle | wc -l)" = 3 ] && break; sleep 0.2; done
sinfo`,
		stopController: "pkill -9 -x " + controller, startController: controller,
		queue: `squeue -h -o '%i %j %T'`, names: `grep -o 'Name=rp[a-z0-9]*' /var/log/slurm/jobcomp`}
}

func condorOuter() outerSystem {
	return outerSystem{kind: "condor",
		start: `cat /opt/test/htcondor.conf > /etc/condor/config.d/90-test
printf '%s\n' 'NUM_CPUS = 12' 'SCHEDD_INTERVAL = 5' 'NEGOTIATOR_INTERVAL = 5' 'NEGOTIATOR_CYCLE_DELAY = 2' \
	'PERIODIC_EXPR_INTERVAL = 20' 'NUM_SLOTS = 1' 'NUM_SLOTS_TYPE_1 = 1' 'SLOT_TYPE_1 = 100%' \
	'SLOT_TYPE_1_PARTITIONABLE = True' >> /etc/condor/config.d/90-test
cd /var; rm -rf log/condor/* spool/condor/* lib/condor/execute/*
for d in /run/condor /run/lock/condor log/condor spool/condor lib/condor lib/condor/execute; do
	mkdir -p $d; chown condor:condor $d
done
chmod 755 lib/condor/execute
condor_master
for i in $(seq 200); do
	[ -n "$(condor_status -af Name 2>/dev/null)" ] && condor_q >/dev/null 2>&1 && break
	sleep 0.3
done
condor_status`,
		stopController:  "condor_off -schedd -fast; while pgrep -x condor_schedd; do sleep 0.2; done",
		startController: "condor_on -schedd >/dev/null",
		queue:           `condor_q -af ClusterId RoostPilotKey JobStatus`,
		names:           `{ condor_history -af RoostPilotKey; condor_q -allusers -af RoostPilotKey; } | grep '^rp'`}
}

func gridEngineOuter() outerSystem {
	return outerSystem{kind: "gridengine",
		start: `export SGE_ROOT=/var/lib/gridengine SGE_CELL=default
sed -e 's/^slots .*/slots 12/' -e 's/^pe_list .*/pe_list smp/' /opt/test/gridengine.queue > /tmp/queue
sed 's/^qconf -Aq .*/qconf -Ap \/tmp\/smp; &/' /opt/test/gridengine.sh > /tmp/start.sh
printf '%s\n' 'pe_name smp' 'slots 999' 'user_lists NONE' 'xuser_lists NONE' 'start_proc_args /bin/true' \
	'stop_proc_args /bin/true' 'allocation_rule $pe_slots' 'control_slaves FALSE' 'job_is_first_task TRUE' \
	'urgency_slots min' 'accounting_summary FALSE' 'qsort_args NONE' > /tmp/smp
bash /tmp/start.sh /tmp/queue fast
for i in $(seq 100); do qstat -f | grep main.q@ | grep -qv -- -NA- && break; sleep 0.3; done
qstat -f`,
		stopController: "pkill -9 -x sge_qmaster",
		startController: "SGE_ROOT=/var/lib/gridengine SGE_CELL=default " +
			"SGE_MASTER_PIDFILE=/run/gridengine/qmaster.pid sge_qmaster",
		queue: `qstat | tail -n +3`,
		names: `cut -d: -f5 /var/lib/gridengine/default/common/accounting | grep '^rp'`}
}

// files are what the Debian gets at /opt/test.
func (s *outerSystem) files(dir string) error {
	conf := filepath.Join("..", "..", "bench", "peers", "conf")
	for _, name := range []string{"slurm.conf", "htcondor.conf", "gridengine.queue", "gridengine.sh"} {
		text, err := os.ReadFile(filepath.Join(conf, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "nodes.conf"), []byte(slurmNodes), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "munge.key"), []byte(strings.Repeat("a test's key ", 100)), 0o600)
}
