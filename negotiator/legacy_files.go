package negotiator

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/roost-batch/roost/negotiator/fairshare"
)

// The files of a negotiator from before the replicated log, when there was only one. Its
// epoch is lower than any of the ledger's, since both began with the time in seconds.
const (
	legacyUsageFile = "usage.json"
	legacyEpochFile = "epoch"
)

// readLegacyAccounts returns the accounts of such a file, if any. Invalid ones are set
// aside, so that the negotiator starts anyway, with new accounts.
func readLegacyAccounts(dir string, log *slog.Logger) []fairshare.SubmitterAccount {
	path := filepath.Join(dir, legacyUsageFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	accountant := fairshare.NewAccountant(fairshare.HalfLife)
	if err == nil {
		err = accountant.Load(text)
	}
	if err != nil {
		log.Error("old usage cannot be read, and all users start without usage; the file is set aside", "file",
			path+".bad", "err", errors.Join(err, os.Rename(path, path+".bad")))
		return nil
	}
	return accountant.Accounts()
}

// setAsideLegacyFiles renames the old files, so that they are not read again if the log
// is lost.
func setAsideLegacyFiles(dir string, log *slog.Logger) {
	for _, name := range []string{legacyUsageFile, legacyEpochFile} {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Warn("an old file could not be set aside", "err", err)
		}
	}
}
