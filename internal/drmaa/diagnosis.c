/* Errors of DRMAA: their standard sentences, and what is special about one. */
#include <stdio.h>
#include <string.h>

#include "roost_drmaa.h"

static const char *const sentences[] = {
	[DRMAA_ERRNO_SUCCESS] = "success",
	[DRMAA_ERRNO_INTERNAL_ERROR] = "internal error",
	[DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE] = "the pool does not answer",
	[DRMAA_ERRNO_AUTH_FAILURE] = "permission denied",
	[DRMAA_ERRNO_INVALID_ARGUMENT] = "an argument is invalid",
	[DRMAA_ERRNO_NO_ACTIVE_SESSION] = "there is no active session: call drmaa_init first",
	[DRMAA_ERRNO_NO_MEMORY] = "out of memory",
	[DRMAA_ERRNO_INVALID_CONTACT_STRING] = "the contact string is invalid",
	[DRMAA_ERRNO_DEFAULT_CONTACT_STRING_ERROR] = "the default contact string cannot be used",
	[DRMAA_ERRNO_NO_DEFAULT_CONTACT_STRING_SELECTED] = "no default contact string was selected",
	[DRMAA_ERRNO_DRMS_INIT_FAILED] = "the session could not be started",
	[DRMAA_ERRNO_ALREADY_ACTIVE_SESSION] = "there is an active session already",
	[DRMAA_ERRNO_DRMS_EXIT_ERROR] = "the session could not be ended",
	[DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT] = "the value of an attribute has a wrong form",
	[DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE] = "the value of an attribute is invalid",
	[DRMAA_ERRNO_CONFLICTING_ATTRIBUTE_VALUES] = "the values of two attributes exclude each other",
	[DRMAA_ERRNO_TRY_LATER] = "the pool cannot take the job now: try later",
	[DRMAA_ERRNO_DENIED_BY_DRM] = "the pool refuses the job",
	[DRMAA_ERRNO_INVALID_JOB] = "there is no such job",
	[DRMAA_ERRNO_RESUME_INCONSISTENT_STATE] = "the job cannot be resumed: it is not suspended",
	[DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE] = "the job cannot be suspended: it does not run",
	[DRMAA_ERRNO_HOLD_INCONSISTENT_STATE] = "the job cannot be held: it does not wait",
	[DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE] = "the job cannot be released: it is not held",
	[DRMAA_ERRNO_EXIT_TIMEOUT] = "the time is over, and the job has not ended",
	[DRMAA_ERRNO_NO_RUSAGE] = "the usage of the job is not known",
	[DRMAA_ERRNO_NO_MORE_ELEMENTS] = "there are no more elements",
};

const char *drmaa_strerror(int drmaa_errno)
{
	if (drmaa_errno < 0 || (size_t)drmaa_errno >= sizeof sentences / sizeof *sentences)
		return "unknown error number";
	return sentences[drmaa_errno];
}

void copy_text(char *to, size_t room, const char *from)
{
	if (to == NULL || room == 0)
		return;
	size_t size = strlen(from);
	if (size >= room)
		size = room - 1;
	memcpy(to, from, size);
	to[size] = 0;
}

int fail(struct diagnosis d, int number, const char *format, ...)
{
	if (format == NULL) {
		copy_text(d.text, d.room, drmaa_strerror(number));
		return number;
	}
	if (d.text != NULL && d.room > 0) {
		va_list arguments;
		va_start(arguments, format);
		vsnprintf(d.text, d.room, format, arguments);
		va_end(arguments);
	}
	return number;
}
