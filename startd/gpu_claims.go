package startd

import (
	"github.com/roost-batch/roost/internal/boottime"
)

// onHealthChanged tells the claim table how the devices are.
func (l *machineLoop) onHealthChanged() {
	if unknown := l.table.SetDevices(boottime.Now(), l.host.gpus.Devices()); len(unknown) > 0 {
		l.host.log.Warn("GPUs have come that were not there at the start: restart the startd to use them",
			"uuids", unknown)
	}
	l.publishAd(true)
}
