package roost

// The names of ad attributes. An attribute that HTCondor has too has the same name, unit
// and meaning here, so that old requirements keep working (HTCondor manual, "Job ClassAd
// Attributes" and "Machine ClassAd Attributes").
const (
	AttrMyType       = "MyType"       // "Job", "Machine", "Scheduler" or "Negotiator"
	AttrName         = "Name"         // unique among the ads of a type
	AttrRequirements = "Requirements" // an expression that must be true of the other side
	AttrRank         = "Rank"         // an expression by which this side prefers the other; higher is better
	AttrMyAddress    = "MyAddress"    // where the daemon listens: "unix:/path" or "host:port"
	AttrMachine      = "Machine"      // host name
	AttrVersion      = "RoostVersion"
	AttrDaemonStart  = "DaemonStartTime" // seconds since the epoch
)

// Attributes of a machine ad. Cpus, Memory, Disk and Gpus are the free amounts.
const (
	AttrCpus             = "Cpus"   // cores; a real number if not whole
	AttrMemory           = "Memory" // MiB
	AttrDisk             = "Disk"   // KiB
	AttrGpus             = "Gpus"
	AttrTotalCpus        = "TotalCpus"
	AttrTotalMemory      = "TotalMemory" // MiB
	AttrTotalDisk        = "TotalDisk"   // KiB
	AttrTotalGpus        = "TotalGpus"
	AttrArch             = "Arch"  // "X86_64"; strings compare without regard to case
	AttrOpSys            = "OpSys" // "LINUX"
	AttrState            = "State" // "Owner", "Unclaimed", "Claimed", "Preempting", "Drained"
	AttrLoadAvg          = "LoadAvg"
	AttrFileSystemDomain = "FileSystemDomain" // machines with the same value see the same files
	AttrBootID           = "BootId"           // the kernel's boot id, which each boot changes
	AttrUpdateSequence   = "UpdateSequenceNumber"
	AttrNumClaims        = "NumClaims"
	AttrEndpoints        = "Endpoints" // list of ads: where the tasks of services on the machine are reached
	// certificates, in base64, of the nodes that have signed the rights of the endpoints
	AttrEndpointSigners = "EndpointSigners"
	// list of ads: the ports on which the daemons of the node serve metrics
	AttrMetricsPorts  = "MetricsPorts"
	AttrNumRunning    = "NumRunning"
	AttrNumTasks      = "NumTasks"      // of a schedd: tasks that have not ended
	AttrCgroupVersion = "CgroupVersion" // 1 or 2; 0: no control groups, so tasks are not limited
	// a list of the limits that the machine enforces: "cpu", "cpuset", "memory",
	// "devices", "pids", "freeze", "io"
	AttrEnforces      = "Enforces"
	AttrTasksCpu      = "TasksCpu"          // cores that tasks use now
	AttrTasksMemory   = "TasksMemory"       // MiB that tasks use now
	AttrStart         = "Start"             // the machine's own policy, to which its Requirements refers
	AttrGpuMemoryMax  = "GpuMemoryMax"      // MiB of the largest GPU
	AttrGpuMemoryFree = "GpuMemoryFree"     // MiB: the largest free share of one GPU
	AttrGpuModels     = "GpuModels"         // a list of the GPUs' names
	AttrHasSandbox    = "HasSandbox"        // tasks run in namespaces of their own
	AttrCheckpointBy  = "CheckpointProgram" // the program that takes checkpoints, such as "CRIU 4.2.1"
	// whether tasks from other nodes run as slot users; undefined: only some do
	AttrSlotUsers     = "SlotUsers"
	AttrHasCheckpoint = "HasCheckpoint" // CRIU can dump and restore tasks here
	AttrHasSecrets    = "HasSecrets"    // tasks can get secrets of their users here
	AttrHasContainer  = "HasContainer"  // tasks can run in container images here
	AttrHasPMI        = "HasPMI"        // the ranks of MPI programs can be started here
	// a list of the digests of container images that are here, those used last first
	AttrContainerImages = "ContainerImages"
)

// Attributes of a machine ad that describe its owner and the input of its owner policy
// (startd/desktop/policy). Times are in seconds. The ad has the values of volatile
// attributes as they were when the ad was made; the policy reads current ones.
const (
	AttrActivity        = "Activity"               // "Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing"
	AttrEnteredState    = "EnteredCurrentState"    // unix seconds
	AttrEnteredActivity = "EnteredCurrentActivity" // unix seconds
	AttrStateTimer      = "StateTimer"             // seconds in the present state
	AttrActivityTimer   = "ActivityTimer"
	AttrKeyboardIdle    = "KeyboardIdle" // seconds since a person used any input of the machine
	AttrConsoleIdle     = "ConsoleIdle"  // seconds since a person used keyboard, mouse or screen
	AttrCondorLoad      = "CondorLoadAvg"
	// CPUs are busy with foreign load; an attribute CpuBusy of the node file overrides
	// the rule
	AttrCpuIsBusy       = "CpuIsBusy"
	AttrCpuBusyTime     = "CpuBusyTime"  // unix seconds: since when CpuIsBusy has its value
	AttrCpuBusyValue    = "CpuBusyValue" // CpuIsBusy as 0 or 1
	AttrClockMin        = "ClockMin"     // minutes since midnight, local time
	AttrClockDay        = "ClockDay"     // day of the week; 0 is Sunday
	AttrJobStart        = "JobStart"     // unix seconds: start of the task that runs on a claim
	AttrOwnerBusy       = "OwnerBusy"    // the owner needs the machine now, so tasks are frozen
	AttrOwnerBusyReason = "OwnerBusyReason"
	AttrPaused          = "Paused" // the owner has paused the machine
	AttrOnBattery       = "OnBattery"
	AttrAsleep          = "Asleep"
	AttrMemoryPressure  = "MemoryPressure" // percent of the last 10 s in which a process waited for memory
	AttrCpuPressure     = "CpuPressure"    // percent of the last 10 s in which a process waited for a CPU
	AttrForeignCpu      = "ForeignCpu"     // cores that processes other than tasks use
	// seconds since something other than input showed that the owner needs the machine
	AttrQuietTime   = "QuietTime"
	AttrOwnerStart  = "StartAfter"  // seconds of KeyboardIdle before the machine accepts claims
	AttrOwnerResume = "ResumeAfter" // seconds of KeyboardIdle before frozen tasks resume
	AttrOwnerLeave  = "LeaveAfter"  // seconds that a task stays frozen before it must leave
)

// Attributes of a machine ad that describe its resource units (HRM §3).
const (
	AttrUnits      = "RUs"        // a list of ads, one for each unit, with its resources and what is free of them
	AttrStreamCpus = "StreamCpus" // of a unit: cores free for stream tasks
	// of a unit: the most batch tasks that may hold a part of it at once; 0: no limit
	AttrRunLimit      = "RunLimit"
	AttrRunning       = "Running"       // of a unit: batch tasks that hold a part of it
	AttrQueueLength   = "QueueLength"   // of a unit: batch tasks in its node queue
	AttrQueueRoom     = "QueueRoom"     // of a unit: how many more batch tasks its node queue accepts
	AttrPredictedWait = "PredictedWait" // of a unit: seconds that one more batch task would wait
)

// Attributes of a machine ad that describe its claims. Each claim that holds a part of
// the machine is an ad in the list AttrClaims, with Owner, PriorityBand, AppClass, Cpus,
// Memory, Disk and Gpus of that part, ConcurrencyLimits, Queue, and the attributes below.
// Attributes that do not apply are absent.
const (
	AttrClaims     = "Claims"
	AttrClaimID    = "Id"
	AttrClaimGroup = "Group" // the group of the claim's owner
	// a list with one list for each resource unit: its number in AttrUnits, cores, MiB
	AttrParts = "Parts"
	// a list with one list for each device: its number, counted through all units, MiB,
	// and whether the claim has it whole
	AttrShares = "Shares"
	// unix seconds: start of the task that runs on the claim; absent: no task runs, or
	// one is just starting
	AttrSince = "Since"
	AttrEnds  = "Ends" // unix seconds: when the task is ended at the latest
	// unix seconds: predicted end of the task, from the run times of similar tasks;
	// absent: unknown
	AttrExpected       = "Expected"
	AttrOnce           = "Once"       // the task is not run again if it is interrupted without a checkpoint
	AttrCheckpointable = "Checkpoint" // the task can be checkpointed when it must leave
	AttrSaved          = "Saved"      // unix seconds: the task's last checkpoint
	AttrJob            = "Job"        // "12[3].host"
	AttrClaimAttempt   = "Attempt"    // number of the attempt that runs on the claim; absent: 1
	// the claim is vacating: its task has been ordered to leave, and the claim ends with
	// it
	AttrLeaving = "Leaving"
	AttrTaken   = "Taken" // another claim waits for the resources of this one and gets them
	// the claim waits for resources: AttrParts and AttrShares are what it gets from
	// vacating claims
	AttrWaits = "Waits"

	AttrReclaimed      = "Reclaimed"      // the claim runs entirely in reclaimed resources
	AttrReservedCpus   = "ReservedCpus"   // usage estimate in cores; absent: equal to the request
	AttrReservedMemory = "ReservedMemory" // usage estimate in MiB; absent: equal to the request
)

// Attributes of a machine ad that describe its reclaimed resources (Borg §5.5). A machine
// without reclamation has none of them.
const (
	AttrReclaim         = "Reclaim"         // the level: "baseline", "medium" or "aggressive"
	AttrReclaimedCpus   = "ReclaimedCpus"   // cores for bands batch and free beyond the free ones
	AttrReclaimedMemory = "ReclaimedMemory" // MiB for bands batch and free beyond the free ones
	// of a unit: cores for bands batch and free, free and reclaimed ones together
	AttrRoomCpus       = "RoomCpus"
	AttrRoomStreamCpus = "RoomStreamCpus" // of a unit: the same for stream tasks
	AttrRoomMemory     = "RoomMemory"     // of a unit: MiB for bands batch and free, free and reclaimed together
)

// Attributes of a job ad.
const (
	AttrJobID    = "JobId" // "123.host"
	AttrJobName  = "JobName"
	AttrOwner    = "Owner"
	AttrOwnerUID = "OwnerUid"
	AttrOwnerGID = "OwnerGid"
	// the Unix group in which the job runs; absent: the group of its submitter's process
	AttrUnixGroup = "UnixGroup"
	AttrSubmitKey = "SubmitKey"
	AttrQDate     = "QDate" // seconds since the epoch
	AttrGroup     = "AccountingGroup"
	AttrBand      = "Band"
	AttrPriority  = "JobPrio"
	AttrQueue     = "Queue" // name of the PBS queue that the job was sent to
	// an expression of the job's queue that machines must meet beside Requirements
	AttrQueueRequires = "QueueRequirements"
	// a list of attributes whose values are defaults of the queue and not the job's own
	AttrQueueDefaults = "QueueDefaults"
	// of a job of qsub: an ad with its requests in PBS words; Resource_List in it is an
	// ad, too
	AttrPBS = "PBS"
	// of a job of sbatch: an ad with its request in Slurm's words, see internal/slurm
	AttrSlurm       = "Slurm"
	AttrTaskCount   = "TaskCount"
	AttrCmd         = "Cmd"
	AttrArguments   = "Arguments"   // a list of strings; $(Name) is replaced by a column of the task's row
	AttrEnvironment = "Environment" // a list of "NAME=value"
	AttrScript      = "Script"      // text of the program, which Shell runs
	// SHA-256, in hexadecimal digits, of a script that the schedd stores; Script is then
	// at most its first line
	AttrScriptFile = "ScriptFile"
	AttrShell      = "Shell"
	AttrIwd        = "Iwd" // absolute directory on the submit node
	AttrIn         = "In"
	AttrOut        = "Out" // a path; empty: the output stays in the spool, for roost logs
	AttrErr        = "Err"
	AttrJoinOutput = "JoinOutput" // stderr goes to the same file as stdout
	AttrUmask      = "Umask"      // an integer
	AttrTransfer   = "Transfer"   // "auto", "always", "never", "store"
	// SHA-256, in hexadecimal digits, of the stored input files of a job whose Transfer
	// is "store", or a column with those of each task
	AttrStoredInput   = "StoredInput"
	AttrTransferIn    = "TransferInput" // a list of paths, or "local => name"
	AttrTransferOut   = "TransferOutput"
	AttrRequestCpus   = "RequestCpus"   // cores
	AttrRequestMemory = "RequestMemory" // MiB
	AttrRequestDisk   = "RequestDisk"   // KiB
	AttrRequestGpus   = "RequestGpus"
	AttrRequestGpuMem = "RequestGpuMemory" // MiB on each GPU; absent or 0: whole GPUs
	AttrWalltime      = "Walltime"         // seconds; 0: no limit
	AttrMaxRetries    = "MaxRetries"       // retries after an exit status that is not success
	AttrNoticePeriod  = "NoticePeriod"     // seconds between SIGTERM and SIGKILL
	AttrJobLease      = "JobLeaseDuration"
	AttrDependsOn     = "DependsOn" // a list of "type:id"
	AttrStartAfter    = "DeferralTime"
	AttrLabels        = "Labels" // a nested ad
	// when runs of the job are made, a nested ad of the next four and AttrOverlap, which
	// is a text there; the job itself never starts
	AttrSchedule = "Schedule"
	AttrCron     = "Cron"     // the five fields
	AttrZone     = "Zone"     // of the IANA database
	AttrMissed   = "Missed"   // which runs are made that were missed
	AttrDeadline = "Deadline" // how late a run may be made, in seconds
	// of a run that a schedule made: the instant, in unix seconds, and the job with the
	// schedule
	AttrScheduledAt = "ScheduledAt"
	AttrScheduledBy = "ScheduledBy"
	AttrRerunnable  = "Rerunnable"
	AttrIsFlow      = "IsFlow" // of a flow: true; it runs nothing itself
	// of a job that runs a part of a node of a flow: the flow's id, the node, the part as
	// "pre", "job" or "post", and how often the node was tried again
	AttrFlowID    = "FlowId"
	AttrFlowNode  = "FlowNode"
	AttrFlowPart  = "FlowPart"
	AttrFlowRetry = "FlowRetry"
	// the file that gets a record of each thing that happens to the job
	AttrUserLog = "UserLog"
	// the tasks run at the submit node, beside its other tasks
	AttrSubmitNodeTask = "SubmitNodeTask"
	// names of secrets that the tasks get, a list of ads with a name and the next two
	AttrSecrets     = "Secrets"
	AttrSecretGroup = "Group"    // the group whose secret it is
	AttrOnChange    = "OnChange" // what is done when the secret gets a new version
	AttrVariable    = "Variable" // the variable of the environment that has the secret, too
	AttrSignal      = "Signal"   // the number of a signal

	// of a job whose tasks run in a container image; see package internal/image/imageref
	AttrContainerImage       = "ContainerImage"            // what the user named
	AttrContainerDigest      = "ContainerImageDigest"      // of the EROFS file, that the submission pinned
	AttrContainerSize        = "ContainerImageSize"        // bytes of that file
	AttrContainerEnvironment = "ContainerImageEnvironment" // of the image: a list of NAME=value
	AttrContainerEntrypoint  = "ContainerImageEntrypoint"  // that runs before the program: a list of words
	AttrContainerCommand     = "ContainerImageCommand"     // of the image: a list of words
	AttrContainerWorkdir     = "ContainerImageWorkdir"     // where the program starts
	AttrContainerUser        = "ContainerImageUser"        // that the image wants
	AttrContainerWritable    = "ContainerImageWritable"    // files of the image may be changed, for the attempt
	AttrContainerMounts      = "ContainerMounts"           // a list of SOURCE:TARGET[:ro]
	AttrUseEntrypoint        = "UseEntrypoint"             // the submission adds the image's entrypoint

	// of a job whose tasks have packages, each with the same place in these lists
	AttrPackageMounts   = "PackageMounts"   // NAME@LABEL:/where, as the user wrote it
	AttrPackageDigests  = "PackageDigests"  // of the EROFS files, that the submission pinned
	AttrPackageVersions = "PackageVersions" // NAME@VERSION, what the label meant then
	AttrPackageSizes    = "PackageSizes"    // bytes of the files
	// NAME@VERSION of a container image, what its label meant when the job was submitted
	AttrContainerVersion = "ContainerImageVersion"

	AttrInteractive = "Interactive" // the job runs on its submitter's terminal, and ends when that closes
	AttrGangSize    = "GangSize"    // size of a gang: this number of tasks start together or not at all
	// an MPI gang: its primary task runs the program, the others only hold resources
	AttrMPIGang = "GangLed"
	// the protocol by which the ranks of an MPI program find each other; absent: the job
	// starts its processes itself
	AttrMPI = "MPI"
	// seconds within which all ranks have to be beyond their first barrier
	AttrStartTimeout = "StartTimeout"
	AttrScatter      = "Apart" // scatter: each task of a gang starts on a machine of its own
	// of a job: each task gets a whole machine alone; of a machine: one claim has it
	// alone
	AttrExclusive = "Exclusive"
	// name of a machine attribute, whose value is the same on all machines of a gang
	AttrPlacementSet   = "Together"
	AttrProcesses      = "Processes"      // of each task: its lines in PBS_NODEFILE
	AttrReservation    = "Reservation"    // the reservation in which alone the job may run
	AttrMaxRunning     = "MaxRunning"     // the most tasks of this job that run at once
	AttrArrayIndex     = "ArrayIndexes"   // the value of $(ArrayIndex) of each task, in the form of ArrayIndexes
	AttrCellQueue      = "CellQueue"      // whether it goes to the queue of the cell; absent: the node file says
	AttrHoldOnSubmit   = "HoldOnSubmit"   //
	AttrSubmitHost     = "SubmitHost"     //
	AttrSubmitVersion  = "SubmitVersion"  //
	AttrAlterations    = "Alterations"    // how often the job was altered
	AttrKeepEmptyFiles = "KeepEmptyFiles" // create the files Out and Err even if nothing was written
	AttrAppClass       = "AppClass"       // "batch" or "stream"
	// the concurrency limits that each claim takes, in the form that ParseLimitRequests
	// reads
	AttrLimits = "ConcurrencyLimits"
	// ports that each task of a job needs, a list of ads with AttrName, AttrPortStatic,
	// AttrPortListen and AttrPortHost
	AttrPorts      = "Ports"
	AttrPortStatic = "Static"
	AttrPortListen = "Listen"
	AttrPortHost   = "Host"
	// of a request: the numbers that its ports must have; of a machine: those that are
	// taken
	AttrStaticPorts = "StaticPorts"
	AttrPortsTaken  = "PortsTaken"
	// of a machine: those of PortsTaken that a program has which is no task
	AttrPortsForeign = "PortsForeign"
	// of a machine: the first and the last number that it gives to ports without numbers
	// of their own, if that is not the default range
	AttrPortRange = "PortRange"
	// of a request: the capabilities that its owner needs for its ports
	AttrPortCapabilities = "PortCapabilities"
	// of a machine: numbers that only one job may have again for a while, a list of ads
	// with AttrPortStatic and AttrJob
	AttrPortsQuarantined = "PortsQuarantined"
	// name of a machine attribute: tasks are spread over machines with different values
	// of it
	AttrSpread = "Spread"
	// a list of names: packages that a job prefers to find, or that a machine has
	AttrPackages = "Packages"
	// soft constraints, a list of expressions as strings: a machine that meets more of
	// them scores higher
	AttrPrefer = "Prefer"

	// seconds of CPU time of all processes of a task together
	AttrCPUTime        = "CpuTimeLimit"
	AttrProcessCPU     = "ProcessCpuTimeLimit"       // seconds of CPU time of each process
	AttrVirtual        = "VirtualMemoryLimit"        // KiB of address space of all processes of a task together
	AttrProcessVirtual = "ProcessVirtualMemoryLimit" // KiB of address space of each process
	AttrProcessMemory  = "ProcessMemoryLimit"        // KiB of memory of each process
	AttrFileSize       = "FileSizeLimit"             // KiB of each file that a task writes
	AttrNice           = "Nice"                      // nice value of a task's processes

	AttrSubmitArguments = "SubmitArguments" // the arguments of qsub, for display only

	// as qsub -W run_count: attempts counted before the first; at the limit the task is
	// held
	AttrRunCount     = "RunCount"
	AttrRemoveOutput = "RemoveOutput" // letters o and e: Out, or Err, is removed when the task has succeeded

	AttrMailPoints = "MailPoints" // letters a, b, e and j of qsub -m: the events that cause mail
	AttrMailUsers  = "MailUsers"  // mail addresses, separated by commas; absent: the owner

	AttrCheckpoint     = "WantCheckpoint" // CRIU takes checkpoints of the job's tasks
	AttrCheckpointSelf = "CheckpointSelf" // the job's tasks write self-checkpoints
	// seconds between checkpoints; 0: the machine chooses; below 0: never periodically
	AttrCheckpointEvery = "CheckpointInterval"
	// name of the signal that asks a task to checkpoint itself, such as "USR2"
	AttrCheckpointSignal = "CheckpointSignal"
	// exit code of a task that has checkpointed itself and must be started again
	AttrCheckpointCode    = "CheckpointExitCode"
	AttrCheckpointFiles   = "TransferCheckpoint" // a list of the files of a self-checkpoint
	AttrCheckpointVacate  = "CheckpointOnVacate"
	AttrCheckpointAtLimit = "CheckpointBeforeWalltime"

	AttrAlloc      = "Alloc"      // of an alloc set: true; its tasks hold resources, and run nothing
	AttrInAlloc    = "InAlloc"    // of a job whose tasks run inside an alloc set: its id
	AttrAllocPlace = "AllocPlace" // of such a job: PlaceByIndex or PlaceAnywhere
	// of an alloc set: a list of the users besides its owner whose jobs may be inside, as
	// "bob" or "bob@node"
	AttrAllocUsers = "AllocUsers"

	AttrService = "Service" // of a service: an ad with the attributes below
	AttrChecks  = "Checks"  // of a service: a list of ads, its health checks
	AttrUpdate  = "Update"  // of a service: an ad that says how it is updated
	AttrLogs    = "Logs"    // of a service: an ad that says how much of its output is kept
	// of a service: an ad that says between what bounds and by what its number of tasks
	// follows its load
	AttrAutoscale = "Autoscale"
	// of a service: an ad that says between what bounds the size of its tasks follows
	// their use
	AttrVerticalAutoscale = "VerticalAutoscale"
)

// Attributes of the ad AttrLogs. Absent ones have their defaults.
const (
	AttrLogSize   = "Size"   // bytes of a stream that are removed at once
	AttrLogFiles  = "Files"  // the most that stays of a stream, in units of AttrLogSize
	AttrLogRetain = "Retain" // seconds for which the output of earlier attempts is kept
)

// Attributes of the ad AttrService. Absent ones have their defaults.
const (
	// seconds without news of a task's machine after which a replacement may start
	AttrLostAfter = "LostAfter"
	AttrOverlap   = "Overlap"  // a replacement may start while the old attempt may still run
	AttrRestarts  = "Restarts" // the most restarts on one machine within AttrWindow
	AttrWindow    = "Window"   // seconds
	// seconds before the first restart of a task that ended early; doubled for each next
	AttrBackoffFirst = "BackoffFirst"
	AttrBackoffMax   = "BackoffMax" // seconds: the longest wait before a restart
	AttrDrain        = "Drain"      // seconds between "leaving" and SIGTERM
	AttrStopURL      = "StopURL"    // path of a POST before SIGTERM
	AttrStopPort     = "StopPort"   // name of the port for it
)

// Attributes of an ad in AttrChecks, beside AttrName. Absent ones have their defaults.
const (
	AttrCheckKind    = "Kind" // "http", "tcp" or "exec"
	AttrCheckFor     = "For"  // CheckForReady or CheckForLive
	AttrCheckPort    = "Port" // the name of a port of the job
	AttrCheckPath    = "Path"
	AttrCheckMethod  = "Method"
	AttrCheckHeaders = "Headers" // a list of "Name: value"
	AttrCheckCommand = "Command" // a list: the program and its arguments
	AttrCheckEvery   = "Every"   // seconds, as the next two
	AttrCheckTimeout = "Timeout"
	// failures that come sooner after the start do not count
	AttrCheckStartWithin = "StartWithin"
	AttrCheckFails       = "Fails"  // in a row, after which the task does not work
	AttrCheckPasses      = "Passes" // in a row, after which it works
)

// Attributes of the ad AttrUpdate. Absent ones have their defaults. Amounts are texts, a
// number of tasks or a part of them such as "10%"; times are seconds.
const (
	AttrAtOnce       = "AtOnce"
	AttrResize       = "Resize" // how a task gets another size: "in-place" or "restart"
	AttrSurge        = "Surge"
	AttrMaxDown      = "MaxDown"
	AttrSettling     = "MinReady" // for how long a task is ready before it counts
	AttrReadyWithin  = "ReadyWithin"
	AttrProgress     = "Progress"
	AttrFailures     = "Failures"
	AttrOnFailure    = "OnFailure" // "undo", "pause", "keep"
	AttrCanary       = "Canary"
	AttrPromoteAfter = "PromoteAfter" // absent: a user promotes
	AttrDisruptions  = "Disruptions"
	AttrPulse        = "Pulse"
	AttrUpdateTasks  = "Tasks" // as in "0-9,12"; absent: all
)

// The defaults of a request for what the job does not state.
const (
	DefaultCPU    MilliCPU = 1000
	DefaultMemory          = 256 * MiB
)

// The values of AttrAppClass. Batch work may wait in a node queue; stream work starts at
// once or not at all.
const (
	AppBatch  = "batch"
	AppStream = "stream"
)

// Bounds that are checked before any work is done.
const (
	MaxTasks         = 10_000_000 // of one job
	MaxDaemonAdBytes = 1 << 20    // of the ad of one daemon, as text
	MaxAdBytes       = 16 << 20   // of one ad as text, an inline script included
	MaxJobFileBytes  = 16 << 20
	MaxColumns       = 256
)

// DefaultQueueName is the queue in which PBS commands show jobs without a queue. It is
// the only queue that a job may name while administrators have made none.
const DefaultQueueName = "batch"

// Attributes of the ad AttrAutoscale. Amounts are texts as in AttrUpdate; times are
// seconds.
const (
	AttrScaleMin     = "Min"
	AttrScaleMax     = "Max"
	AttrScaleMetric  = "Metric" // the name of a metric that the tasks export
	AttrScalePort    = "Port"   // the name of the port on which they do
	AttrScalePath    = "Path"
	AttrScaleTarget  = "Target" // of the metric, or of waiting tasks, for each task
	AttrScaleCPU     = "CPU"    // the part of the cores that a task asks for that it is to use
	AttrScaleMemory  = "Memory" // likewise of memory
	AttrWaitingQueue = "WaitingQueue"
	AttrWaitingJob   = "WaitingJob"
	AttrTolerance    = "Tolerance" // a part of the target
	AttrUpWindow     = "UpWindow"
	AttrDownWindow   = "DownWindow"
	AttrScalePeriod  = "Period"
	AttrUpBy         = "UpBy"
	AttrDownBy       = "DownBy"
	AttrScaleEvery   = "Every"
)

// Attributes of the ad of a pilot.
const (
	AttrPilotOwner    = "PilotOwner"    // whose tasks it runs, as PilotOwner.String
	AttrPilotUntil    = "PilotUntil"    // unix seconds of the authority's clock: when it is gone; absent: unknown
	AttrPilotProvider = "PilotProvider" // the provider whose allocation it is in
	AttrPilotKey      = "PilotKey"      // of the allocation
	AttrPilotHost     = "PilotHost"     // the name that the machine has there
)

// Attributes of the ad AttrVerticalAutoscale, beside AttrScaleEvery. Times are seconds.
const (
	AttrMinCpus    = "MinCpus"   // cores
	AttrMaxCpus    = "MaxCpus"   // absent: the cores stay
	AttrMinMemory  = "MinMemory" // MiB
	AttrMaxMemory  = "MaxMemory" // absent: the memory stays
	AttrSizeWindow = "Window"
	AttrMargin     = "Margin" // a part of the use
)
