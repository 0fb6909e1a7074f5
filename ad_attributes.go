package roost

// The attribute names of ads. Where HTCondor has an attribute for the same thing it has
// the same name, unit and meaning here (HTCondor manual, "Job ClassAd Attributes" and
// "Machine ClassAd Attributes"), so that old requirements keep working.
const (
	AttrMyType       = "MyType"       // "Job" or "Machine", "Scheduler", "Negotiator"
	AttrName         = "Name"         // unique among the ads of a type
	AttrRequirements = "Requirements" // what this side asks of the other
	AttrRank         = "Rank"         // how much this side likes the other; bigger is better
	AttrMyAddress    = "MyAddress"    // where the daemon listens: "unix:/path" or "host:port"
	AttrMachine      = "Machine"      // host name
	AttrVersion      = "RoostVersion"
	AttrDaemonStart  = "DaemonStartTime" // seconds since the epoch
)

// Attributes of a machine ad. Cpus, Memory, Disk and Gpus are what is free now.
const (
	AttrCpus             = "Cpus"   // cores, a real when not whole
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
	AttrFileSystemDomain = "FileSystemDomain" // machines with the same one see the same files
	AttrBootID           = "BootId"           // the kernel's, changed by each boot
	AttrUpdateSequence   = "UpdateSequenceNumber"
	AttrNumClaims        = "NumClaims"
	AttrNumRunning       = "NumRunning"
	AttrNumTasks         = "NumTasks"          // of a schedd: those that have not ended
	AttrCgroupVersion    = "CgroupVersion"     // 1 or 2; 0: tasks are not limited
	AttrEnforces         = "Enforces"          // a list of "cpu", "cpuset", "memory", "devices", "pids", "freeze"
	AttrTasksCpu         = "TasksCpu"          // cores that tasks keep busy
	AttrTasksMemory      = "TasksMemory"       // MiB that tasks use
	AttrStart            = "Start"             // the machine's own policy; Requirements refers to it
	AttrGpuMemoryMax     = "GpuMemoryMax"      // MiB of the largest card
	AttrGpuMemoryFree    = "GpuMemoryFree"     // MiB, the largest share that is free
	AttrGpuModels        = "GpuModels"         // a list of the cards' names
	AttrHasSandbox       = "HasSandbox"        // tasks run in namespaces of their own
	AttrCheckpointBy     = "CheckpointProgram" // by which, as in "CRIU 4.2.1"
	AttrSlotUsers        = "SlotUsers"         // tasks from other nodes run as slot users; undefined: some do
	AttrHasCheckpoint    = "HasCheckpoint"     // images of processes can be taken and restored
)

// Attributes of a machine ad that say whose it is now, and by which its policy decides
// (startd/desktop/policy). Times are in seconds. Those that change all the time are in the ad as
// they were when it was made; the policy sees them as they are.
const (
	AttrActivity        = "Activity"               // "Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing"
	AttrEnteredState    = "EnteredCurrentState"    // unix seconds
	AttrEnteredActivity = "EnteredCurrentActivity" // unix seconds
	AttrStateTimer      = "StateTimer"             // since then
	AttrActivityTimer   = "ActivityTimer"
	AttrKeyboardIdle    = "KeyboardIdle" // since somebody touched the machine, however
	AttrConsoleIdle     = "ConsoleIdle"  // the same, of keyboard, mouse and screen
	AttrCondorLoad      = "CondorLoadAvg"
	AttrCpuIsBusy       = "CpuIsBusy"    // with others' work, or as an attribute CpuBusy of the node file says
	AttrCpuBusyTime     = "CpuBusyTime"  // unix seconds: since when
	AttrCpuBusyValue    = "CpuBusyValue" // CpuIsBusy as 0 or 1
	AttrClockMin        = "ClockMin"     // minutes since midnight, by the clock on the wall
	AttrClockDay        = "ClockDay"     // of the week; 0 is Sunday
	AttrJobStart        = "JobStart"     // unix seconds; of a claim on which something runs
	AttrOwnerBusy       = "OwnerBusy"    // the machine is its owner's now, and stands still for others
	AttrOwnerBusyReason = "OwnerBusyReason"
	AttrPaused          = "Paused" // its owner said so
	AttrOnBattery       = "OnBattery"
	AttrAsleep          = "Asleep"
	AttrMemoryPressure  = "MemoryPressure" // percent of the last 10 s in which somebody waited for memory
	AttrCpuPressure     = "CpuPressure"    // likewise
	AttrForeignCpu      = "ForeignCpu"     // cores that others than tasks keep busy
	AttrQuietTime       = "QuietTime"      // since something other than input made the machine its owner's
	AttrOwnerStart      = "StartAfter"     // of KeyboardIdle, until the machine is lent
	AttrOwnerResume     = "ResumeAfter"    // likewise, until its tasks go on
	AttrOwnerLeave      = "LeaveAfter"     // that a task stands still, until it leaves
)

// Attributes of a machine ad that say how it is cut into resource units (HRM §3).
const (
	AttrUnits      = "RUs"        // a list of ads, one for each unit, with what it has and what is free
	AttrStreamCpus = "StreamCpus" // of a unit: cores free for stream tasks
	// of a unit: batch tasks that may hold a part of it at once; 0 for as many as fit
	AttrRunLimit      = "RunLimit"
	AttrRunning       = "Running"       // of a unit: batch tasks that hold a part of it
	AttrQueueLength   = "QueueLength"   // of a unit: batch tasks that wait on the machine
	AttrQueueRoom     = "QueueRoom"     // of a unit: how many more may
	AttrPredictedWait = "PredictedWait" // of a unit: seconds until one more would start
)

// Attributes of a machine ad that say who has it. Each claim that holds a part of the
// machine is an ad in the list AttrClaims, with Owner, PriorityBand, AppClass, Cpus,
// Memory, Disk and Gpus of that part, ConcurrencyLimits, Queue, and these. What does not
// apply is left out.
const (
	AttrClaims     = "Claims"
	AttrClaimID    = "Id"
	AttrClaimGroup = "Group" // of its owner
	// by resource unit: a list of lists of the unit's number in AttrUnits, cores, and MiB
	AttrParts = "Parts"
	// by device: a list of lists of the device's number, counted through all units, MiB,
	// and whether it is taken whole
	AttrShares = "Shares"
	// unix seconds: when the task that runs on it started; none: nothing runs, or what
	// does has only just begun
	AttrSince = "Since"
	AttrEnds  = "Ends" // unix seconds: when that task is ended if it has not ended before
	// unix seconds: when it is likely to be over, as tasks like it were; none: nobody
	// knows
	AttrExpected       = "Expected"
	AttrOnce           = "Once"       // that task is not run again if it is interrupted and nothing of it was saved
	AttrCheckpointable = "Checkpoint" // that task can be saved when it has to leave
	AttrSaved          = "Saved"      // unix seconds: when it was last saved
	AttrJob            = "Job"        // "12[3].host"
	AttrLeaving        = "Leaving"    // it ends as soon as nothing runs on it, and what does was told to go
	AttrTaken          = "Taken"      // what it holds goes to another claim then, that waits for it
	// it holds nothing yet: AttrParts and AttrShares are what it gets of what those hold
	// that leave
	AttrWaits = "Waits"

	AttrReclaimed      = "Reclaimed"      // it has nothing of its own: it runs in what others leave
	AttrReservedCpus   = "ReservedCpus"   // cores that it is expected to use; none: all
	AttrReservedMemory = "ReservedMemory" // MiB likewise
)

// Attributes of a machine ad that say what is lent of what its tasks leave (Borg §5.5). A
// machine that lends nothing has none of them.
const (
	AttrReclaim         = "Reclaim"         // how much is: "baseline", "medium" or "aggressive"
	AttrReclaimedCpus   = "ReclaimedCpus"   // cores that batch and free may be given beyond those free
	AttrReclaimedMemory = "ReclaimedMemory" // MiB likewise
	AttrRoomCpus        = "RoomCpus"        // of a unit: cores that batch and free may be given, free or lent
	AttrRoomStreamCpus  = "RoomStreamCpus"  // of a unit: likewise, stream tasks
	AttrRoomMemory      = "RoomMemory"      // of a unit: MiB likewise
)

// Attributes of a job ad.
const (
	AttrJobID         = "JobId" // "123.host"
	AttrJobName       = "JobName"
	AttrOwner         = "Owner"
	AttrOwnerUID      = "OwnerUid"
	AttrOwnerGID      = "OwnerGid"
	AttrUnixGroup     = "UnixGroup" // that its owner is in, and it runs in; none: the one that he submits with
	AttrSubmitKey     = "SubmitKey"
	AttrQDate         = "QDate" // seconds since the epoch
	AttrGroup         = "AccountingGroup"
	AttrBand          = "Band"
	AttrPriority      = "JobPrio"
	AttrQueue         = "Queue"             // PBS's name of where it was sent
	AttrQueueRequires = "QueueRequirements" // what machines have to be beside Requirements: its queue says so
	// a list of attributes whose values the job does not say: its queue gave them
	AttrQueueDefaults = "QueueDefaults"
	// of a job of qsub: an ad of what was asked for in PBS's own words, Resource_List in
	// it an ad too
	AttrPBS         = "PBS"
	AttrTaskCount   = "TaskCount"
	AttrCmd         = "Cmd"
	AttrArguments   = "Arguments"   // a list of strings; $(Name) stands for a column of the task
	AttrEnvironment = "Environment" // a list of "NAME=value"
	AttrScript      = "Script"      // inline program text, run by Shell
	// the name of one that the schedd keeps, the SHA-256 of its text in hexadecimal
	// digits: then Script is its first line at most
	AttrScriptFile    = "ScriptFile"
	AttrShell         = "Shell"
	AttrIwd           = "Iwd" // absolute directory on the submit side
	AttrIn            = "In"
	AttrOut           = "Out" // empty: kept in the spool, for roost logs
	AttrErr           = "Err"
	AttrJoinOutput    = "JoinOutput"    // stderr goes where stdout goes
	AttrUmask         = "Umask"         // an integer
	AttrTransfer      = "Transfer"      // "auto", "always", "never"
	AttrTransferIn    = "TransferInput" // a list of paths, or "local => name"
	AttrTransferOut   = "TransferOutput"
	AttrRequestCpus   = "RequestCpus"   // cores
	AttrRequestMemory = "RequestMemory" // MiB
	AttrRequestDisk   = "RequestDisk"   // KiB
	AttrRequestGpus   = "RequestGpus"
	AttrRequestGpuMem = "RequestGpuMemory" // MiB on each GPU; none or 0: whole GPUs
	AttrWalltime      = "Walltime"         // seconds; 0 for no limit
	AttrMaxRetries    = "MaxRetries"       // after an exit status that is not success
	AttrNoticePeriod  = "NoticePeriod"     // seconds between SIGTERM and SIGKILL
	AttrJobLease      = "JobLeaseDuration"
	AttrDependsOn     = "DependsOn" // a list of "type:id"
	AttrStartAfter    = "DeferralTime"
	AttrLabels        = "Labels" // a nested ad
	AttrRerunnable    = "Rerunnable"
	AttrInteractive   = "Interactive" // it runs on the terminal of who submitted it, and ends with that
	AttrGangSize      = "GangSize"    // so many of its tasks start together or not at all
	// the first of them runs the program, and the others hold their parts of machines for
	// it
	AttrMPIGang = "GangLed"
	AttrScatter = "Apart" // they start on a machine each
	// of a job: each task has its machine alone, and all of it; of a machine: somebody
	// has it so
	AttrExclusive      = "Exclusive"
	AttrPlacementSet   = "Together"       // the machines of a gang have the same value of this attribute of theirs
	AttrProcesses      = "Processes"      // of each task: lines of the file of nodes that the job finds
	AttrReservation    = "Reservation"    // the only one in which it may run
	AttrMaxRunning     = "MaxRunning"     // at most so many tasks of this job at once
	AttrArrayIndex     = "ArrayIndexes"   // what $(ArrayIndex) is of each task, as ArrayIndexes has it
	AttrHoldOnSubmit   = "HoldOnSubmit"   //
	AttrSubmitHost     = "SubmitHost"     //
	AttrSubmitVersion  = "SubmitVersion"  //
	AttrAlterations    = "Alterations"    // how often it was altered
	AttrKeepEmptyFiles = "KeepEmptyFiles" // make Out and Err even when nothing was written
	AttrAppClass       = "AppClass"       // "batch" or "stream"
	// what each claim takes of the pool's licences, as ParseLimitRequests reads it
	AttrLimits = "ConcurrencyLimits"
	// the machines' attribute over whose values the job's tasks are to be spread
	AttrSpread = "Spread"
	// a list of names: of a job, what it would like to find; of a machine, what it has
	AttrPackages = "Packages"
	// a list of expressions as strings: machines that meet more of them are better
	AttrPrefer = "Prefer"

	// seconds, of all processes of a task together; so the next without "Process"
	AttrCPUTime        = "CpuTimeLimit"
	AttrProcessCPU     = "ProcessCpuTimeLimit"       // seconds, of each of them
	AttrVirtual        = "VirtualMemoryLimit"        // KiB that they address
	AttrProcessVirtual = "ProcessVirtualMemoryLimit" // KiB
	AttrProcessMemory  = "ProcessMemoryLimit"        // KiB
	AttrFileSize       = "FileSizeLimit"             // KiB, of each file that a task writes
	AttrNice           = "Nice"                      // of a task's processes

	AttrSubmitArguments = "SubmitArguments" // the words behind qsub, for its user to read

	// as of qsub -W run_count: attempts that are counted before the first; with it a task
	// that needs too many is held
	AttrRunCount     = "RunCount"
	AttrRemoveOutput = "RemoveOutput" // of o and e: Out, or Err, goes when the task has succeeded

	AttrMailPoints = "MailPoints" // of a, b, e and j as of qsub -m: what somebody is told of
	AttrMailUsers  = "MailUsers"  // whom, with commas between; none: the owner

	AttrCheckpoint        = "WantCheckpoint"     // images are taken of its tasks
	AttrCheckpointSelf    = "CheckpointSelf"     // its tasks save their own state
	AttrCheckpointEvery   = "CheckpointInterval" // seconds; 0: chosen by the machine, below 0: never periodically
	AttrCheckpointSignal  = "CheckpointSignal"   // asks a task to save its own state; a name such as "USR2"
	AttrCheckpointCode    = "CheckpointExitCode" // of a task that has saved its state and is to be started again
	AttrCheckpointFiles   = "TransferCheckpoint" // a list of what it saves
	AttrCheckpointVacate  = "CheckpointOnVacate"
	AttrCheckpointAtLimit = "CheckpointBeforeWalltime"
)

// The defaults of a request, where the job says nothing.
const (
	DefaultCPU    MilliCPU = 1000
	DefaultMemory          = 256 * MiB
)

// The kinds of work (AttrAppClass). Batch work may wait on a node for its turn; stream
// work starts at once or not at all.
const (
	AppBatch  = "batch"
	AppStream = "stream"
)

// Bounds that are checked before work is done.
const (
	MaxTasks         = 10_000_000 // of one job
	MaxDaemonAdBytes = 1 << 20    // of what a daemon says of itself, as text
	MaxAdBytes       = 16 << 20   // of one ad as text, an inline script included
	MaxJobFileBytes  = 16 << 20
	MaxColumns       = 256
)

// DefaultQueueName is the queue that people see jobs in that are in none, and the only
// one that they may name where administrators have made none.
const DefaultQueueName = "batch"
