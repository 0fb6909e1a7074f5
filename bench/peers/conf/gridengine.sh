# Makes a cell of Grid Engine, and starts its qmaster: bash gridengine.sh QUEUE fast|stock [MACHINES]. With MACHINES, no execution daemon is started, and
# so many hosts are made up: the qmaster then acts as if jobs ran there (SIMULATE_EXECDS in sge_conf(5)).
set -e
queue=$1 profile=$2 machines=${3:-0}
rm -rf /var/spool/gridengine/* $SGE_ROOT/default/common
mkdir -p $SGE_ROOT/default/common /var/spool/gridengine/qmaster/job_scripts /var/spool/gridengine/spooldb /var/spool/gridengine/execd /run/gridengine
echo peers >$SGE_ROOT/default/common/act_qmaster
echo bench >$SGE_ROOT/default/common/cluster_name
cp /usr/share/gridengine/default-bootstrap $SGE_ROOT/default/common/bootstrap
chown -R sgeadmin:sgeadmin /var/spool/gridengine $SGE_ROOT/default /run/gridengine
grep -q sge_qmaster /etc/services || printf 'sge_qmaster 6444/tcp\nsge_execd 6445/tcp\n' >>/etc/services
as() { su -s /bin/sh -c "$*" sgeadmin; }
as /usr/share/gridengine/scripts/init_cluster $SGE_ROOT default /var/spool/gridengine/spooldb sgeadmin
SGE_MASTER_PIDFILE=/run/gridengine/qmaster.pid sge_qmaster
for _ in $(seq 100); do as qconf -sh >/dev/null 2>&1 && break; sleep 0.1; done
as qconf -am root || true # it is one already where the package was told so
as qconf -ah peers || true
as qconf -as peers || true
SGE_SINGLE_LINE=1 qconf -sconf | grep -v '^#' | sed 's/^max_aj_tasks.*/max_aj_tasks 200000/' >/tmp/global # 75,000
[ "$machines" = 0 ] || sed -i 's/^qmaster_params.*/qmaster_params SIMULATE_EXECDS=true/' /tmp/global
qconf -Mconf /tmp/global
if [ "$machines" = 0 ]; then
	SGE_EXECD_PIDFILE=/run/gridengine/execd.pid sge_execd
	sleep 1
else
	{ printf 'hostlist'; for i in $(seq 0 $((machines - 1))); do printf ' m%05d' $i; done; echo; } >/tmp/hosts
	sed -i "s/^hostlist.*//; s/^slots.*/slots 1/" $queue
	cat /tmp/hosts >>$queue
fi
qconf -Aq $queue
qconf -ssconf >/tmp/scheduler
# Behind each word, what it is when nothing is said.
if [ $profile = fast ]; then
	sed -i \
		-e 's/^schedule_interval.*/schedule_interval 0:0:1/' `# 0:0:15` \
		-e 's/^flush_submit_sec.*/flush_submit_sec 1/' `# 0: a submit does not begin a cycle` \
		-e 's/^flush_finish_sec.*/flush_finish_sec 1/' `# 0: nor does the end of a job` \
		-e 's/^schedd_job_info.*/schedd_job_info false/' /tmp/scheduler # true: why each job waits is kept
	SGE_SINGLE_LINE=1 qconf -sconf | grep -v '^#' | sed 's/flush_time=00:00:15/flush_time=00:00:01/' >/tmp/global
	qconf -Mconf /tmp/global
fi
sed -i -e 's/^maxujobs.*/maxujobs 0/' -e "s/^params.*/params PROFILE=1/" /tmp/scheduler
[ "$machines" != 0 ] || sed -i 's/^params.*/params none/' /tmp/scheduler
qconf -Msconf /tmp/scheduler
