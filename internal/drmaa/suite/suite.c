/*
 * The cases of DRMAA's test programs, against the pool that ROOST_DIR names.
 *
 * Usage: suite DIRECTORY [CASE...]. It prints a line for each case, and ends with 1 if
 * one of them has failed.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drmaa.h"

static const char *directory;
static char diagnosis[DRMAA_ERROR_STRING_BUFFER];
static bool failed;

#define D diagnosis, sizeof diagnosis
#define NONE NULL, 0

#define CHECK(condition)                                                                        \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			printf("  line %d: %s is false (%s)\n", __LINE__, #condition, diagnosis); \
			failed = true;                                                          \
		}                                                                               \
	} while (0)

#define EXPECT(number, call)                                                                          \
	do {                                                                                          \
		int got = (call), wanted = (number);                                                  \
		if (got != wanted) {                                                                  \
			printf("  line %d: %s: %d (%s), want %d; %s\n", __LINE__, #call, got, drmaa_strerror(got), \
				wanted, diagnosis);                                                       \
			failed = true;                                                                \
		}                                                                                     \
	} while (0)

#define OK(call) EXPECT(DRMAA_ERRNO_SUCCESS, call)

/* template makes a job template of a shell command. */
static drmaa_job_template_t *template(const char *command)
{
	drmaa_job_template_t *jt = NULL;
	const char *arguments[] = {"-c", command, NULL};
	char path[512];
	OK(drmaa_allocate_job_template(&jt, D));
	if (jt == NULL)
		exit(2);
	OK(drmaa_set_attribute(jt, DRMAA_REMOTE_COMMAND, "/bin/sh", D));
	OK(drmaa_set_vector_attribute(jt, DRMAA_V_ARGV, arguments, D));
	OK(drmaa_set_attribute(jt, DRMAA_WD, directory, D));
	snprintf(path, sizeof path, ":%s/output", DRMAA_PLACEHOLDER_WD);
	OK(drmaa_set_attribute(jt, DRMAA_OUTPUT_PATH, path, D));
	OK(drmaa_set_attribute(jt, DRMAA_JOIN_FILES, "y", D));
	OK(drmaa_set_attribute(jt, DRMAA_NATIVE_SPECIFICATION, "-l ncpus=1,mem=32mb", D));
	return jt;
}

static void set(drmaa_job_template_t *jt, const char *name, const char *value)
{
	OK(drmaa_set_attribute(jt, name, value, D));
}

/* run submits a shell command and writes its id. */
static void run(char *id, size_t room, const char *command, const char *state)
{
	drmaa_job_template_t *jt = template(command);
	id[0] = 0;
	if (state != NULL)
		set(jt, DRMAA_JS_STATE, state);
	OK(drmaa_run_job(id, room, jt, D));
	CHECK(id[0] >= '0' && id[0] <= '9');
	OK(drmaa_delete_job_template(jt, D));
}

static void begin(void) { OK(drmaa_init(NULL, D)); }

static void end(void) { OK(drmaa_exit(D)); }

/* wait_state waits until a job is in a state. */
static void wait_state(const char *id, int wanted)
{
	int state = -1;
	for (time_t latest = time(NULL) + 60; state != wanted && time(NULL) < latest;) {
		OK(drmaa_job_ps(id, &state, D));
		if (state != wanted)
			nanosleep(&(struct timespec){0, 20000000}, NULL); /* between two questions */
	}
	if (state != wanted) {
		printf("  %s is in state 0x%x, want 0x%x\n", id, state, wanted);
		failed = true;
	}
}

static int run_bulk(drmaa_job_template_t *jt, int first, int last, int step, char ids[][64], int room)
{
	drmaa_job_ids_t *list = NULL;
	size_t count = 0;
	int n = 0;
	OK(drmaa_run_bulk_jobs(&list, jt, first, last, step, D));
	if (list == NULL)
		return 0;
	OK(drmaa_get_num_job_ids(list, &count));
	while (n < room && drmaa_get_next_job_id(list, ids[n], sizeof ids[n]) == DRMAA_ERRNO_SUCCESS)
		n++;
	CHECK((size_t)n == count);
	drmaa_release_job_ids(list);
	return n;
}

static void sessions(void)
{
	char contact[DRMAA_CONTACT_BUFFER], other[DRMAA_CONTACT_BUFFER];
	drmaa_job_template_t *jt;
	int state;
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_exit(D));
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_job_ps("1", &state, D));
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_allocate_job_template(&jt, D));
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_control("1", DRMAA_CONTROL_HOLD, D));
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_wait("1", NONE, NULL, 0, NULL, D));
	OK(drmaa_get_contact(contact, sizeof contact, D));
	EXPECT(DRMAA_ERRNO_INVALID_CONTACT_STRING, drmaa_init("unknown", D));
	EXPECT(DRMAA_ERRNO_INVALID_CONTACT_STRING, drmaa_init("session=../x", D));
	EXPECT(DRMAA_ERRNO_DRM_COMMUNICATION_FAILURE, drmaa_init("pool=/nonexistent", D));
	OK(drmaa_init("", D));
	end();
	begin();
	EXPECT(DRMAA_ERRNO_ALREADY_ACTIVE_SESSION, drmaa_init(NULL, D));
	OK(drmaa_get_contact(other, sizeof other, D));
	CHECK(strcmp(contact, other) != 0);
	end();
	EXPECT(DRMAA_ERRNO_NO_ACTIVE_SESSION, drmaa_exit(D));
	for (int i = 0; i < 3; i++) {
		begin();
		end();
	}
}

static void information(void)
{
	unsigned major = 0, minor = 9;
	char text[1024] = "", shorter[6];
	OK(drmaa_version(&major, &minor, D));
	CHECK(major == 1 && minor == 0);
	OK(drmaa_get_DRM_system(text, sizeof text, D));
	CHECK(strncmp(text, "Roost ", 6) == 0);
	OK(drmaa_get_DRMAA_implementation(text, sizeof text, D));
	OK(drmaa_get_DRM_system(shorter, sizeof shorter, NONE));
	CHECK(strcmp(shorter, "Roost") == 0);
	for (int i = 0; i <= DRMAA_ERRNO_NO_MORE_ELEMENTS; i++)
		CHECK(strlen(drmaa_strerror(i)) > 0);
	CHECK(drmaa_strerror(-1) != NULL && drmaa_strerror(1000) != NULL);
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_version(NULL, NULL, D));
}

static void empty_session(void)
{
	const char *all[] = {DRMAA_JOB_IDS_SESSION_ALL, NULL};
	int state;
	begin();
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, NULL, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, NULL, DRMAA_TIMEOUT_NO_WAIT, NULL, D));
	OK(drmaa_synchronize(all, DRMAA_TIMEOUT_WAIT_FOREVER, 0, D));
	OK(drmaa_synchronize(all, DRMAA_TIMEOUT_WAIT_FOREVER, 1, D));
	for (int action = DRMAA_CONTROL_SUSPEND; action <= DRMAA_CONTROL_TERMINATE; action++)
		OK(drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, action, D));
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, 17, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_job_ps("no id", &state, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_job_ps("99999", &state, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_control("99999", DRMAA_CONTROL_TERMINATE, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait("99999", NONE, NULL, 30, NULL, D));
	end();
}

static bool lists_name(drmaa_attr_names_t *names, const char *wanted)
{
	char name[DRMAA_ATTR_BUFFER];
	bool found = false;
	while (drmaa_get_next_attr_name(names, name, sizeof name) == DRMAA_ERRNO_SUCCESS)
		found = found || strcmp(name, wanted) == 0;
	drmaa_release_attr_names(names);
	return found;
}

static void attributes(void)
{
	static const char *const refused[][3] = {
		{DRMAA_JS_STATE, "held", "v"}, {DRMAA_JOIN_FILES, "maybe", "v"}, {DRMAA_TRANSFER_FILES, "all", "v"},
		{DRMAA_BLOCK_EMAIL, "2", "v"}, {DRMAA_START_TIME, "noon", "f"}, {DRMAA_DEADLINE_TIME, "1:2:3:4", "f"},
		{DRMAA_WCT_HLIMIT, "ten", "f"}, {DRMAA_OUTPUT_PATH, "/no/colon", "f"}, {DRMAA_INPUT_PATH, ":", "f"}};
	static const char *const taken[][2] = {
		{DRMAA_START_TIME, "12:00"}, {DRMAA_START_TIME, "2026/12/24 18:00:00 +01:00"}, {DRMAA_START_TIME, "24 18:00"},
		{DRMAA_WCT_HLIMIT, "1:00:00"}, {DRMAA_DURATION_SLIMIT, "90"}, {DRMAA_TRANSFER_FILES, "eio"},
		{DRMAA_ERROR_PATH, "host.example.org:/tmp/$drmaa_incr_ph$"}, {DRMAA_BLOCK_EMAIL, "1"}};
	const char *list[] = {"a", "", "c=d", NULL}, *bad[] = {"A=1", "B", NULL};
	char value[DRMAA_ATTR_BUFFER];
	drmaa_attr_names_t *names;
	drmaa_attr_values_t *values;
	size_t count = 0;
	begin();
	static const char *const scalars[] = {DRMAA_REMOTE_COMMAND, DRMAA_WCT_SLIMIT, DRMAA_DEADLINE_TIME, DRMAA_JOB_CATEGORY};
	for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
		OK(drmaa_get_attribute_names(&names, D));
		CHECK(lists_name(names, scalars[i]));
	}
	OK(drmaa_get_vector_attribute_names(&names, D));
	OK(drmaa_get_num_attr_names(names, &count));
	CHECK(count == 3 && lists_name(names, DRMAA_V_EMAIL));
	drmaa_job_template_t *jt = template("true");
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_set_attribute(jt, "blafasel", "x", D));
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_set_vector_attribute(jt, "blafasel", list, D));
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_set_attribute(jt, DRMAA_V_ARGV, "x", D));
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_set_attribute(NULL, DRMAA_WD, "x", D));
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		EXPECT(refused[i][2][0] == 'v' ? DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE : DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT,
			drmaa_set_attribute(jt, refused[i][0], refused[i][1], D));
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
		set(jt, taken[i][0], taken[i][1]);
		OK(drmaa_get_attribute(jt, taken[i][0], value, sizeof value, D));
		CHECK(strcmp(value, taken[i][1]) == 0);
	}
	EXPECT(DRMAA_ERRNO_INVALID_ATTRIBUTE_FORMAT, drmaa_set_vector_attribute(jt, DRMAA_V_ENV, bad, D));
	OK(drmaa_set_vector_attribute(jt, DRMAA_V_ARGV, list, D));
	OK(drmaa_get_vector_attribute(jt, DRMAA_V_ARGV, &values, D));
	OK(drmaa_get_num_attr_values(values, &count));
	CHECK(count == 3);
	for (int i = 0; i < 3; i++) {
		OK(drmaa_get_next_attr_value(values, value, sizeof value));
		CHECK(strcmp(value, list[i]) == 0);
	}
	EXPECT(DRMAA_ERRNO_NO_MORE_ELEMENTS, drmaa_get_next_attr_value(values, value, sizeof value));
	drmaa_release_attr_values(values);
	OK(drmaa_get_attribute(jt, DRMAA_JOB_NAME, value, sizeof value, D));
	CHECK(value[0] == 0);
	OK(drmaa_delete_job_template(jt, D));
	end();
}

static void submit_and_wait(void)
{
	char id[64], out[64], text[256] = "";
	const char *ids[] = {id, NULL};
	int stat = 0, value = 0;
	drmaa_attr_values_t *usage = NULL;
	begin();
	run(id, sizeof id, "exit 7", NULL);
	OK(drmaa_wait(id, out, sizeof out, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, &usage, D));
	CHECK(strcmp(id, out) == 0);
	OK(drmaa_wifexited(&value, stat, D));
	CHECK(value == 1);
	OK(drmaa_wexitstatus(&value, stat, D));
	CHECK(value == 7);
	bool wall = false;
	while (usage != NULL && drmaa_get_next_attr_value(usage, text, sizeof text) == DRMAA_ERRNO_SUCCESS)
		wall = wall || strncmp(text, "wallclock=", 10) == 0;
	CHECK(wall);
	drmaa_release_attr_values(usage);
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(id, NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, D));
	OK(drmaa_job_ps(id, &value, D));
	CHECK(value == DRMAA_PS_DONE);
	run(id, sizeof id, "sleep 600", NULL);
	EXPECT(DRMAA_ERRNO_EXIT_TIMEOUT, drmaa_wait(id, NONE, &stat, DRMAA_TIMEOUT_NO_WAIT, NULL, D));
	EXPECT(DRMAA_ERRNO_EXIT_TIMEOUT, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, 1, NULL, D));
	EXPECT(DRMAA_ERRNO_EXIT_TIMEOUT, drmaa_synchronize(ids, 1, 1, D));
	wait_state(id, DRMAA_PS_RUNNING);
	OK(drmaa_control(id, DRMAA_CONTROL_TERMINATE, D));
	OK(drmaa_synchronize(ids, DRMAA_TIMEOUT_WAIT_FOREVER, 0, D));
	OK(drmaa_job_ps(id, &value, D));
	CHECK(value == DRMAA_PS_FAILED);
	OK(drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, out, sizeof out, &stat, DRMAA_TIMEOUT_NO_WAIT, NULL, D));
	CHECK(strcmp(id, out) == 0);
	OK(drmaa_wifsignaled(&value, stat, D));
	CHECK(value == 1);
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_control(id, DRMAA_CONTROL_TERMINATE, D));
	run(id, sizeof id, "true", NULL);
	OK(drmaa_synchronize(ids, DRMAA_TIMEOUT_WAIT_FOREVER, 1, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(id, NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, D));
	end();
}

static void bulks(void)
{
	static char ids[300][64];
	char out[64], path[512];
	int stat = 0, value = 0, n;
	struct stat info;
	begin();
	drmaa_job_template_t *jt = template("exit $PBS_ARRAY_INDEX");
	set(jt, DRMAA_OUTPUT_PATH, ":$drmaa_wd_ph$/bulk.$drmaa_incr_ph$");
	n = run_bulk(jt, 3, 255, 7, ids, 300);
	CHECK(n == 37);
	for (int i = 0; i < n; i++) {
		OK(drmaa_wait(ids[i], NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, D));
		OK(drmaa_wexitstatus(&value, stat, D));
		CHECK(value == 3 + 7 * i);
		snprintf(path, sizeof path, "%s/bulk.%d", directory, 3 + 7 * i);
		CHECK(stat == 0 || lstat(path, &info) == 0);
		unlink(path);
	}
	n = run_bulk(jt, 9, 2, -3, ids, 300);
	CHECK(n == 3);
	const char *all[] = {DRMAA_JOB_IDS_SESSION_ALL, NULL};
	OK(drmaa_synchronize(all, DRMAA_TIMEOUT_WAIT_FOREVER, 0, D));
	for (int i = 0; i < n; i++) {
		OK(drmaa_wait(ids[i], NONE, &stat, DRMAA_TIMEOUT_NO_WAIT, NULL, D));
		OK(drmaa_wexitstatus(&value, stat, D));
		CHECK(value == 9 - 3 * i);
	}
	n = run_bulk(jt, 5, 5, 1, ids, 300);
	CHECK(n == 1);
	OK(drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, out, sizeof out, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, D));
	OK(drmaa_wexitstatus(&value, stat, D));
	CHECK(value == 5 && strcmp(out, ids[0]) == 0);
	drmaa_job_ids_t *none;
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_run_bulk_jobs(&none, jt, 1, 5, 0, D));
	EXPECT(DRMAA_ERRNO_INVALID_ARGUMENT, drmaa_run_bulk_jobs(&none, jt, 5, 1, 1, D));
	OK(drmaa_delete_job_template(jt, D));
	end();
}

#define THREADS 8
#define PER_THREAD 5

static void *submit_some(void *ids)
{
	for (int i = 0; i < PER_THREAD; i++)
		run(((char (*)[64])ids)[i], 64, "true", NULL);
	return NULL;
}

static void *wait_some(void *ids)
{
	int stat;
	for (int i = 0; i < PER_THREAD; i++)
		if (drmaa_wait(((char (*)[64])ids)[i], NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, NONE) != 0)
			failed = true;
	return NULL;
}

static void *wait_any(void *count)
{
	int stat;
	while (drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, NONE) == 0)
		++*(int *)count;
	return NULL;
}

static void threads(void)
{
	static char ids[THREADS][PER_THREAD][64];
	pthread_t all[THREADS];
	int counts[THREADS] = {0}, sum = 0;
	begin();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, submit_some, ids[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, wait_some, ids[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
	for (int i = 0; i < THREADS; i++)
		submit_some(ids[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, wait_any, &counts[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(all[i], NULL);
		sum += counts[i];
	}
	CHECK(sum == THREADS * PER_THREAD);
	end();
}

static void *wait_for_long(void *number)
{
	int stat;
	*(int *)number = drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, DRMAA_TIMEOUT_WAIT_FOREVER, NULL, NONE);
	return NULL;
}

/* The session is ended while a thread waits. A later one with the same contact goes on. */
static void reattached(void)
{
	char id[64], contact[DRMAA_CONTACT_BUFFER];
	int number = -1, stat = 0, value = 0;
	pthread_t thread;
	begin();
	OK(drmaa_get_contact(contact, sizeof contact, D));
	run(id, sizeof id, "sleep 600", NULL);
	pthread_create(&thread, NULL, wait_for_long, &number);
	wait_state(id, DRMAA_PS_RUNNING);
	end();
	pthread_join(thread, NULL);
	CHECK(number == DRMAA_ERRNO_NO_ACTIVE_SESSION);
	pid_t other = fork();
	if (other == 0)
		_exit(drmaa_init(contact, D) == 0 && drmaa_init(contact, D) == DRMAA_ERRNO_ALREADY_ACTIVE_SESSION &&
			drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, DRMAA_CONTROL_TERMINATE, D) == 0 && drmaa_exit(D) == 0 ? 0 : 1);
	CHECK(waitpid(other, &value, 0) == other && value == 0);
	OK(drmaa_init(contact, D));
	OK(drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, 60, NULL, D));
	OK(drmaa_wifsignaled(&value, stat, D));
	CHECK(value == 1);
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, 60, NULL, D));
	end();
	OK(drmaa_init(contact, D));
	EXPECT(DRMAA_ERRNO_INVALID_JOB, drmaa_wait(DRMAA_JOB_IDS_SESSION_ANY, NONE, &stat, 60, NULL, D));
	end();
}

static void signals(void)
{
	static const char *const names[] = {"ABRT", "HUP", "INT", "KILL", "SEGV", "TERM", "USR1"};
	char id[64], command[64], name[DRMAA_SIGNAL_BUFFER];
	int stat = 0, value = 0;
	begin();
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(command, sizeof command, "kill -%s $$; sleep 600", names[i]);
		run(id, sizeof id, command, NULL);
		OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
		OK(drmaa_wifsignaled(&value, stat, D));
		CHECK(value == 1);
		OK(drmaa_wtermsig(name, sizeof name, stat, D));
		CHECK(strncmp(name, "SIG", 3) == 0 && strcmp(name + 3, names[i]) == 0);
		OK(drmaa_wcoredump(&value, stat, D));
		OK(drmaa_wifexited(&value, stat, D));
		CHECK(value == 0);
		OK(drmaa_job_ps(id, &value, D));
		CHECK(value == DRMAA_PS_FAILED);
	}
	end();
}

/* Jobs whose files or programs are not there are aborted. */
static void aborted(void)
{
	static const char *const wrong[][2] = {
		{DRMAA_INPUT_PATH, ":/nonexistent/input"}, {DRMAA_REMOTE_COMMAND, "/nonexistent/program"},
		{DRMAA_WD, "/nonexistent/directory"}, {DRMAA_OUTPUT_PATH, ":/nonexistent/output"}};
	char id[64];
	int stat = 0, value = 0;
	begin();
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		drmaa_job_template_t *jt = template("true");
		set(jt, wrong[i][0], wrong[i][1]);
		int number = drmaa_run_job(id, sizeof id, jt, D);
		OK(drmaa_delete_job_template(jt, D));
		if (number == DRMAA_ERRNO_DENIED_BY_DRM)
			continue; /* it may be refused at once */
		OK(number);
		OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
		OK(drmaa_wifaborted(&value, stat, D));
		if (value != 1)
			printf("  %s=%s\n", wrong[i][0], wrong[i][1]);
		CHECK(value == 1);
		OK(drmaa_job_ps(id, &value, D));
		CHECK(value == DRMAA_PS_FAILED);
	}
	end();
}

static void holds(void)
{
	static char ids[4][64];
	char id[64];
	const char *all[] = {DRMAA_JOB_IDS_SESSION_ALL, NULL};
	int stat, value = 0, n;
	begin();
	run(id, sizeof id, "true", DRMAA_SUBMISSION_STATE_HOLD);
	wait_state(id, DRMAA_PS_USER_ON_HOLD);
	EXPECT(DRMAA_ERRNO_EXIT_TIMEOUT, drmaa_wait(id, NONE, &stat, 1, NULL, D));
	EXPECT(DRMAA_ERRNO_SUSPEND_INCONSISTENT_STATE, drmaa_control(id, DRMAA_CONTROL_SUSPEND, D));
	EXPECT(DRMAA_ERRNO_RESUME_INCONSISTENT_STATE, drmaa_control(id, DRMAA_CONTROL_RESUME, D));
	OK(drmaa_control(id, DRMAA_CONTROL_RELEASE, D));
	OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
	drmaa_job_template_t *jt = template("true");
	set(jt, DRMAA_OUTPUT_PATH, ":/dev/null");
	set(jt, DRMAA_JS_STATE, DRMAA_SUBMISSION_STATE_HOLD);
	n = run_bulk(jt, 1, 4, 1, ids, 4);
	wait_state(ids[3], DRMAA_PS_USER_ON_HOLD);
	OK(drmaa_control(ids[1], DRMAA_CONTROL_RELEASE, D));
	OK(drmaa_wait(ids[1], NONE, &stat, 60, NULL, D));
	OK(drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, DRMAA_CONTROL_RELEASE, D));
	OK(drmaa_synchronize(all, 60, 1, D));
	n = run_bulk(jt, 1, 4, 1, ids, 4);
	OK(drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, DRMAA_CONTROL_TERMINATE, D));
	for (int i = 0; i < n; i++) {
		OK(drmaa_wait(ids[i], NONE, &stat, 60, NULL, D));
		OK(drmaa_wifaborted(&value, stat, D));
		CHECK(value == 1);
	}
	OK(drmaa_delete_job_template(jt, D));
	end();
}

static void suspends(void)
{
	char id[64];
	int stat, value;
	begin();
	run(id, sizeof id, "sleep 600", NULL);
	wait_state(id, DRMAA_PS_RUNNING);
	EXPECT(DRMAA_ERRNO_HOLD_INCONSISTENT_STATE, drmaa_control(id, DRMAA_CONTROL_HOLD, D));
	EXPECT(DRMAA_ERRNO_RELEASE_INCONSISTENT_STATE, drmaa_control(id, DRMAA_CONTROL_RELEASE, D));
	EXPECT(DRMAA_ERRNO_RESUME_INCONSISTENT_STATE, drmaa_control(id, DRMAA_CONTROL_RESUME, D));
	OK(drmaa_control(id, DRMAA_CONTROL_SUSPEND, D));
	wait_state(id, DRMAA_PS_USER_SUSPENDED);
	OK(drmaa_control(DRMAA_JOB_IDS_SESSION_ALL, DRMAA_CONTROL_RESUME, D));
	wait_state(id, DRMAA_PS_RUNNING);
	OK(drmaa_control(id, DRMAA_CONTROL_TERMINATE, D));
	OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
	OK(drmaa_wifaborted(&value, stat, D));
	CHECK(value == 0);
	end();
}

/* Environment, arguments, input, limits and times reach the job. */
static void details(void)
{
	char id[64], path[512], line[256] = "", start[64];
	const char *environment[] = {"WORD=a,\"b\" $c", "EMPTY=", NULL};
	int stat = 0, value = 0;
	begin();
	snprintf(path, sizeof path, "%s/input", directory);
	FILE *file = fopen(path, "w");
	fputs("from the input\n", file);
	fclose(file);
	drmaa_job_template_t *jt = template("cat; echo \"$WORD\"; pwd; echo error >&2");
	OK(drmaa_set_vector_attribute(jt, DRMAA_V_ENV, environment, D));
	set(jt, DRMAA_INPUT_PATH, ":$drmaa_wd_ph$/input");
	set(jt, DRMAA_OUTPUT_PATH, ":details.$PBS_JOBNAME");
	set(jt, DRMAA_JOB_NAME, "details");
	set(jt, DRMAA_TRANSFER_FILES, "ioe");
	time_t later = time(NULL) + 2;
	strftime(start, sizeof start, "%Y/%m/%d %H:%M:%S", localtime(&later));
	set(jt, DRMAA_START_TIME, start);
	OK(drmaa_run_job(id, sizeof id, jt, D));
	OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
	CHECK(time(NULL) >= later);
	snprintf(path, sizeof path, "%s/details.details", directory);
	file = fopen(path, "r");
	CHECK(file != NULL);
	if (file != NULL) {
		size_t n = fread(line, 1, sizeof line - 1, file);
		line[n] = 0;
		fclose(file);
	}
	snprintf(path, sizeof path, "from the input\na,\"b\" $c\n%s\nerror\n", directory);
	CHECK(strcmp(line, path) == 0);
	OK(drmaa_delete_job_template(jt, D));
	jt = template("sleep 600");
	set(jt, DRMAA_WCT_HLIMIT, "0:01");
	OK(drmaa_run_job(id, sizeof id, jt, D));
	OK(drmaa_wait(id, NONE, &stat, 60, NULL, D));
	OK(drmaa_wifsignaled(&value, stat, D));
	CHECK(value == 1);
	set(jt, DRMAA_WCT_SLIMIT, "1:00");
	EXPECT(DRMAA_ERRNO_CONFLICTING_ATTRIBUTE_VALUES, drmaa_run_job(id, sizeof id, jt, D));
	set(jt, DRMAA_WCT_SLIMIT, NULL);
	set(jt, DRMAA_JOB_CATEGORY, "nosuch");
	EXPECT(DRMAA_ERRNO_DENIED_BY_DRM, drmaa_run_job(id, sizeof id, jt, D));
	set(jt, DRMAA_JOB_CATEGORY, "");
	set(jt, DRMAA_NATIVE_SPECIFICATION, "-q nosuch");
	EXPECT(DRMAA_ERRNO_DENIED_BY_DRM, drmaa_run_job(id, sizeof id, jt, D));
	set(jt, DRMAA_REMOTE_COMMAND, "");
	EXPECT(DRMAA_ERRNO_INVALID_ATTRIBUTE_VALUE, drmaa_run_job(id, sizeof id, jt, D));
	OK(drmaa_delete_job_template(jt, D));
	end();
}

static const struct { const char *name; void (*run)(void); } cases[] = {
	{"sessions", sessions}, {"information", information}, {"empty_session", empty_session}, {"attributes", attributes},
	{"submit_and_wait", submit_and_wait}, {"bulks", bulks}, {"threads", threads}, {"reattached", reattached},
	{"signals", signals}, {"aborted", aborted}, {"holds", holds}, {"suspends", suspends}, {"details", details},
};

int main(int argc, char **argv)
{
	bool any_failed = false;
	if (argc < 2) {
		fprintf(stderr, "usage: suite DIRECTORY [CASE...]\n");
		return 2;
	}
	directory = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool wanted = argc == 2;
		for (int n = 2; n < argc; n++)
			wanted = wanted || strcmp(argv[n], cases[i].name) == 0;
		if (!wanted)
			continue;
		failed = false;
		cases[i].run();
		printf("%s %s\n", failed ? "FAILED" : "ok", cases[i].name);
		any_failed = any_failed || failed;
	}
	return any_failed;
}
