package policy

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost"
)

// machineNames are the attributes that a machine has, apart from what people add;
// requestNames those that it is told of a job before it takes it, by which start and rank
// decide; and runningNames those that it knows of one that is there, for the other
// settings.
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
		roost.AttrCheckpointBy, roost.AttrHasCheckpoint, roost.AttrSlotUsers,
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

// containsName reports whether a list of names has one, in whatever letters.
func containsName(list []string, name string) bool {
	return slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, name) })
}
