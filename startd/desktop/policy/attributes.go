package policy

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// machineNames lists the attributes of a machine, without those that people add.
// requestNames lists those of a job before it is accepted, for start and rank.
// runningNames lists those of a running job, for the other settings.
var (
	machineNames = []string{
		roost.AttrMyType, roost.AttrName, roost.AttrRequirements, roost.AttrRank, roost.AttrMyAddress,
		roost.AttrMachine, roost.AttrVersion, roost.AttrDaemonStart,
		roost.AttrCpus, roost.AttrMemory, roost.AttrDisk, roost.AttrGpus, roost.AttrTotalCpus, roost.AttrTotalMemory,
		roost.AttrTotalDisk, roost.AttrTotalGpus,
		roost.AttrArch, roost.AttrOpSys, roost.AttrState, roost.AttrLoadAvg, roost.AttrFileSystemDomain,
		roost.AttrBootID, roost.AttrUpdateSequence,
		roost.AttrNumClaims, roost.AttrNumRunning, roost.AttrCgroupVersion, roost.AttrEnforces, roost.AttrTasksCpu,
		roost.AttrTasksMemory, roost.AttrStart,
		roost.AttrGpuMemoryMax, roost.AttrGpuMemoryFree, roost.AttrGpuModels, roost.AttrHasSandbox,
		roost.AttrCheckpointBy, roost.AttrHasCheckpoint, roost.AttrSlotUsers, roost.AttrHasSecrets, roost.AttrHasPMI,
		roost.AttrUnits, roost.AttrClaims, roost.AttrReclaim, roost.AttrReclaimedCpus, roost.AttrReclaimedMemory,
		roost.AttrPackages, "KernelVersion",
		roost.AttrActivity, roost.AttrEnteredState, roost.AttrEnteredActivity, roost.AttrStateTimer,
		roost.AttrActivityTimer, roost.AttrKeyboardIdle,
		roost.AttrConsoleIdle, roost.AttrCondorLoad, roost.AttrCpuIsBusy, roost.AttrCpuBusyTime, roost.AttrCpuBusyValue,
		roost.AttrClockMin, roost.AttrClockDay,
		roost.AttrJobStart, roost.AttrOwnerBusy, roost.AttrOwnerBusyReason, roost.AttrPaused, roost.AttrOnBattery,
		roost.AttrAsleep, roost.AttrMemoryPressure,
		roost.AttrCpuPressure, roost.AttrForeignCpu, roost.AttrQuietTime, roost.AttrOwnerStart, roost.AttrOwnerResume,
		roost.AttrOwnerLeave,
		roost.AttrPilotOwner, roost.AttrPilotUntil, roost.AttrPilotProvider, roost.AttrPilotKey, roost.AttrPilotHost,
	}
	requestNames = []string{
		roost.AttrMyType, roost.AttrRequirements, roost.AttrRank, roost.AttrOwner, roost.AttrOwnerUID, roost.AttrGroup,
		roost.AttrBand, roost.AttrQueue,
		roost.AttrAppClass, roost.AttrRequestCpus, roost.AttrRequestMemory, roost.AttrRequestDisk,
		roost.AttrRequestGpus, roost.AttrRequestGpuMem,
		roost.AttrWalltime, roost.AttrGangSize, roost.AttrReservation, roost.AttrLimits, roost.AttrPackages,
		roost.AttrPrefer, roost.AttrSpread,
		roost.AttrFileSystemDomain,
	}
	runningNames = []string{
		roost.AttrOwner, roost.AttrGroup, roost.AttrBand, roost.AttrAppClass, roost.AttrJob, roost.AttrRequestCpus,
		roost.AttrRequestMemory,
		roost.AttrRequestGpus, roost.AttrWalltime,
	}
)

// containsName reports whether a list contains a name, ignoring case.
func containsName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}
