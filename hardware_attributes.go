package roost

// Attributes of a machine ad that describe its hardware. KFlops and Mips are HTCondor's.
const (
	AttrDiskIO       = "DiskIo"       // KiB per second that are free; absent: the machine states no rate
	AttrTotalDiskIO  = "TotalDiskIo"  // KiB per second
	AttrNetwork      = "Network"      // KiB per second that are free; absent: the machine states no rate
	AttrTotalNetwork = "TotalNetwork" // KiB per second

	AttrThreadsPerCore = "ThreadsPerCore" // CPUs of each physical core; more than 1: SMT
	AttrPhysicalCores  = "PhysicalCores"  // physical cores of which the machine offers all CPUs
	AttrNumaNodes      = "NumaNodes"
	AttrNumaNodeCpus   = "NumaNodeCpus" // CPUs of the largest NUMA node
	// thousand floating-point operations per second of one CPU, as measured
	AttrKFlops = "KFlops"
	// million integer operations per second of one CPU, as measured
	AttrMips = "Mips"
)

// Attributes of a job ad that say how a machine treats its tasks.
const (
	AttrRequestDiskIO = "RequestDiskIo"  // KiB per second; absent or 0: not requested
	AttrRequestNet    = "RequestNetwork" // KiB per second; absent or 0: not requested

	AttrCPUSlack    = "CpuSlack"    // false: never more CPU time than requested
	AttrMemorySlack = "MemorySlack" // true: memory beyond the request while the machine has it idle
	// true: each task has physical cores that no other task runs on
	AttrWholeCores  = "WholeCores"
	AttrCoreThreads = "CoreThreads" // CPUs that a task uses of each of its physical cores; absent: all
	AttrOneNumaNode = "OneNumaNode" // true: all CPUs of a task are of one NUMA node
)
