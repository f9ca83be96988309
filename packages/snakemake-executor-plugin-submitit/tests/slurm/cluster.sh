#!/usr/bin/env bash
# A real one-machine Slurm (controller, node daemon, accounting) for the tests. Debian 12, root, no systemd needed.
#
#   cluster.sh up [DIR]                start it; prints `export SLURM_CONF=DIR/slurm.conf`; at once when it is already up
#   cluster.sh down [DIR]              cancel all jobs, stop everything
#   cluster.sh stop-accounting [DIR]   stop slurmdbd only: a Slurm whose accounting has died
#   cluster.sh start-accounting [DIR]  start slurmdbd again
#
# DIR (default /var/tmp/test-slurm) holds configuration, state, database and logs; remove it after `down` to start afresh.
# SLURM_TEST_DEFAULTS=1 keeps Slurm's default timings (for benchmarks); without it jobs start and requeue sooner.
# SLURM_TEST_MEMORY=1 kills jobs over their --mem (OUT_OF_MEMORY). It needs the memory controller of cgroup v1; without
# it memory is scheduled, never enforced.
set -euo pipefail

CLUSTER="test"
PORTS=(6817 6818 6819) # slurmctld, slurmd, slurmdbd: Slurm's own
PACKAGES=(slurm-wlm slurm-client munge slurmdbd mariadb-server)
MUNGE_SOCKET=/run/munge/munge.socket.2 # the default: sacct and sacctmgr cannot authenticate on any other

log() { printf 'cluster.sh: %s\n' "$*" >&2; }

die() {
    log "$*"
    exit 1
}

# ---- small helpers ----------------------------------------------------------------------------------------------------

# running NAME: whether the process of DIR/NAME.pid is NAME (ids are reused after a reboot) and no zombie.
running() {
    local pid
    pid=$(cat "$DIR/$1.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
    awk -v name="$1" '/^Name:/ {same = $2 == name} /^State:/ {alive = $2 !~ /[ZX]/} END {exit !(same && alive)}' \
        "/proc/$pid/status" 2>/dev/null
}

# wait_for SECONDS WHAT COMMAND...: poll until COMMAND succeeds.
wait_for() {
    local deadline=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || die "$what did not answer in time; see the logs in $DIR"
        sleep 0.1
    done
}

# stop_daemon NAME: SIGTERM by process id, SIGKILL if it is still there after 20 s.
stop_daemon() {
    local pid
    if running "$1"; then
        pid=$(cat "$DIR/$1.pid")
        kill -TERM "$pid" 2>/dev/null || true
        for _ in $(seq 200); do
            running "$1" || break
            sleep 0.1
        done
        if running "$1"; then kill -KILL "$pid" 2>/dev/null || true; fi
    fi
    rm -f "$DIR/$1.pid"
}

# ---- what must be there -----------------------------------------------------------------------------------------------

require_debian_root() {
    [ "$(id -u)" -eq 0 ] || die "must run as root (the daemons and the jobs run as root), got user $(id -un)"
    [ -f /etc/debian_version ] || die "needs Debian 12 or a relative of it: there is no /etc/debian_version"
}

install_packages() {
    local missing=() package
    for package in "${PACKAGES[@]}"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    log "installing ${missing[*]}"
    {
        apt-get update
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
    } >"$DIR/apt.log" 2>&1 || die "apt-get failed; see $DIR/apt.log"
}

resolve_hostname() {
    getent ahostsv4 "$HOST" >/dev/null || echo "127.0.0.1 $HOST" >>/etc/hosts
    # Daemons bind to what the host name resolves to, so the addresses in slurm.conf must be the same.
    ADDRESS=$(getent ahostsv4 "$HOST" | awk 'NR == 1 {print $1}')
}

# ---- configuration ----------------------------------------------------------------------------------------------------

# The first line of slurm.conf: what was asked for, so that a running Slurm of another kind is noticed.
mode() { echo "# SLURM_TEST_DEFAULTS=${SLURM_TEST_DEFAULTS:-0} SLURM_TEST_MEMORY=${SLURM_TEST_MEMORY:-0}"; }

quick_timings() {
    cat <<END
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=1,bf_interval=1
# With an epilog the node reports each finished job, and the controller schedules at once instead of at its next tick.
Epilog=/bin/true
# cred_expire is also how long a requeued job is held (default 120 s); 5 s is the least.
AuthInfo=cred_expire=5
KillWait=5
CompleteWait=0
END
}

slurm_conf() {
    local cpus memory task_plugin=task/none
    [ "${SLURM_TEST_MEMORY:-0}" = 0 ] || task_plugin=task/cgroup
    cpus=$(nproc)
    [ "$cpus" -ge 2 ] || cpus=2
    memory=$(awk '/^MemTotal/ {print int($2 / 1024) - 1024}' /proc/meminfo)
    mode
    cat <<END
ClusterName=$CLUSTER
SlurmctldHost=$HOST($ADDRESS)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=$task_plugin
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobRequeue=1
OverTimeLimit=0
MinJobAge=300
ReturnToService=1
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$ADDRESS
MaxArraySize=10001
MaxJobCount=20000
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd.pid
SlurmctldLogFile=$DIR/slurmctld.log
SlurmdLogFile=$DIR/slurmd.log
GresTypes=gpu
NodeName=$HOST NodeAddr=$ADDRESS CPUs=$cpus RealMemory=$memory Gres=gpu:2 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    [ "${SLURM_TEST_DEFAULTS:-0}" = 1 ] || quick_timings
}

cgroup_conf() {
    if [ "${SLURM_TEST_MEMORY:-0}" = 0 ]; then
        echo "CgroupAutomount=no"
        return
    fi
    [ -d /sys/fs/cgroup/memory ] || die "SLURM_TEST_MEMORY=1 needs cgroup v1: there is no /sys/fs/cgroup/memory"
    printf '%s\n' CgroupPlugin=cgroup/v1 CgroupMountpoint=/sys/fs/cgroup ConstrainRAMSpace=yes
}

write_configuration() {
    mkdir -p "$DIR/state" "$DIR/spool"
    slurm_conf >"$DIR/slurm.conf"
    cgroup_conf >"$DIR/cgroup.conf"
    # Pretend GPUs: any two device files do; Slurm sets CUDA_VISIBLE_DEVICES per job.
    echo "NodeName=$HOST Name=gpu File=/dev/null,/dev/zero" >"$DIR/gres.conf"
    cat >"$DIR/slurmdbd.conf" <<END
AuthType=auth/munge
DbdHost=$HOST
DbdAddr=$ADDRESS
CommunicationParameters=NoInAddrAny
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm_acct_db
PidFile=$DIR/slurmdbd.pid
LogFile=$DIR/slurmdbd.log
END
    chmod 600 "$DIR/slurmdbd.conf"
}

# Another Slurm on these ports would answer in place of this one.
require_free_ports() {
    local port
    for port in "${PORTS[@]}"; do
        if (: <"/dev/tcp/$ADDRESS/$port") 2>/dev/null; then
            die "port $port of $ADDRESS is taken: is another Slurm up? Stop it first (\`cluster.sh down ITS_DIR\`)"
        fi
    done
}

# ---- daemons ----------------------------------------------------------------------------------------------------------

munge_works() { munge -n | unmunge; }

start_munged() {
    munge_works >/dev/null 2>&1 && return
    local directories=("${MUNGE_SOCKET%/*}" /etc/munge /var/lib/munge /var/log/munge)
    mkdir -p "${directories[@]}"
    chown munge:munge "${directories[@]}"
    [ -s /etc/munge/munge.key ] || setpriv --reuid=munge --regid=munge --clear-groups mungekey --create
    # --force: a socket left by a killed munged is replaced.
    setpriv --reuid=munge --regid=munge --clear-groups munged --force >>"$DIR/munged.log" 2>&1
    cp /run/munge/munged.pid "$DIR/munged.pid"
    wait_for 20 munged munge_works
}

database() { mariadb --no-defaults --socket="$DIR/mariadb.sock" --user=root "$@"; }

# A database of its own, on a socket in DIR: no port, no password, and a system-wide one is left alone.
start_mariadb() {
    running mariadbd && return
    if [ ! -d "$DIR/mariadb/mysql" ]; then
        mariadb-install-db --no-defaults --user=root --datadir="$DIR/mariadb" \
            --auth-root-authentication-method=socket --skip-test-db >"$DIR/mariadb-install.log" 2>&1 ||
            die "mariadb-install-db failed; see $DIR/mariadb-install.log"
    fi
    setsid mariadbd --no-defaults --user=root --datadir="$DIR/mariadb" --socket="$DIR/mariadb.sock" \
        --pid-file="$DIR/mariadbd.pid" --skip-networking --innodb-buffer-pool-size=128M --innodb-lock-wait-timeout=900 \
        --innodb-flush-log-at-trx-commit=0 >>"$DIR/mariadbd.log" 2>&1 </dev/null &
    wait_for 60 mariadbd database -e 'create database if not exists slurm_acct_db'
}

accounting_answers() { timeout 10 sacctmgr -n show cluster; }

start_slurmdbd() {
    running slurmdbd && return
    # StorageHost=localhost means the client library's default socket, which this variable names.
    MYSQL_UNIX_PORT="$DIR/mariadb.sock" slurmdbd >>"$DIR/start.log" 2>&1 || die "slurmdbd failed; see $DIR/slurmdbd.log"
    wait_for 60 slurmdbd accounting_answers
}

start_slurmctld() {
    running slurmctld && return
    sacctmgr -i add cluster "$CLUSTER" >>"$DIR/start.log" 2>&1 || true # there already after the first start
    slurmctld >>"$DIR/start.log" 2>&1 || die "slurmctld failed; see $DIR/slurmctld.log"
    wait_for 30 slurmctld controller_answers
}

start_slurmd() {
    running slurmd && return
    slurmd >>"$DIR/start.log" 2>&1 || die "slurmd failed; see $DIR/slurmd.log"
}

controller_answers() { timeout 10 scontrol ping | grep -q 'is UP'; }

# A node in use counts: `up` may be called while jobs run.
node_usable() { timeout 10 sinfo -h -N -o %T | grep -Eqx 'idle|planned|mixed|allocated|completing'; }

# A node that a test left down comes back, too.
node_ready() {
    if timeout 10 sinfo -h -N -o %T | grep -Eq 'down|drain'; then scontrol update nodename="$HOST" state=resume; fi
    node_usable
}

is_up() {
    [ -f "$SLURM_CONF" ] && command -v sinfo >/dev/null &&
        running slurmctld && running slurmd && running slurmdbd && node_usable && accounting_answers >/dev/null
}

# ---- commands ---------------------------------------------------------------------------------------------------------

require_mode() {
    local found
    found=$(head -n 1 "$SLURM_CONF")
    [ "$found" = "$(mode)" ] || die "asked for '$(mode)', but it is up with '$found'; run \`cluster.sh down $DIR\` first"
}

up() {
    install_packages
    resolve_hostname
    if running slurmctld; then
        require_mode # something else has died: bring only that back
    else
        running slurmdbd || require_free_ports
        write_configuration
    fi
    start_munged
    start_mariadb
    start_slurmdbd
    start_slurmctld
    start_slurmd
    wait_for 60 "the node" node_ready
    wait_for 60 slurmdbd accounting_answers
}

down() {
    if running slurmctld; then
        timeout 10 scancel --partition=gpu >>"$DIR/start.log" 2>&1 || true
        # KillWait (30 s by default) passes before a job that ignores SIGTERM is gone.
        for _ in $(seq 400); do
            [ -n "$(timeout 10 squeue -h 2>/dev/null)" ] || break
            sleep 0.1
        done
    fi
    local daemon
    for daemon in slurmd slurmctld slurmdbd mariadbd munged; do stop_daemon "$daemon"; done
}

# locked COMMAND: one command at a time per DIR. The daemons must not inherit the lock, so COMMAND runs without it.
locked() {
    require_debian_root
    mkdir -p "$DIR"
    (
        flock 9
        "$@" 9>&-
    ) 9>"$DIR/lock"
}

ACTION=${1:-}
DIR=$(realpath -m "${2:-/var/tmp/test-slurm}")
HOST=$(hostname -s)
export SLURM_CONF=$DIR/slurm.conf

case "$ACTION" in
    up)
        if is_up 2>/dev/null; then require_mode; else locked up; fi
        echo "export SLURM_CONF=$SLURM_CONF"
        ;;
    down) locked down ;;
    stop-accounting) locked stop_daemon slurmdbd ;;
    start-accounting) locked start_slurmdbd ;;
    *) die "got '$ACTION'; usage: cluster.sh up|down|stop-accounting|start-accounting [DIR]" ;;
esac
