/* The functions of libpq that are used, as a table that is filled when the first connection is wanted (postgres.c's
 * own header). Any thread; constant once lat_libpq_load has said LAT_OK. */
#ifndef LAT_STORES_LIBPQ_H
#define LAT_STORES_LIBPQ_H

#include <libpq-fe.h>

#include "base/error.h"

#define LAT_LIBPQ_FUNCTIONS(X) \
	X(conninfoParse)           \
	X(conninfoFree)            \
	X(freemem)                 \
	X(connectStartParams)      \
	X(connectPoll)             \
	X(status)                  \
	X(socket)                  \
	X(errorMessage)            \
	X(setNoticeReceiver)       \
	X(setnonblocking)          \
	X(enterPipelineMode)       \
	X(sendPrepare)             \
	X(sendQueryPrepared)       \
	X(pipelineSync)            \
	X(flush)                   \
	X(consumeInput)            \
	X(isBusy)                  \
	X(getResult)               \
	X(notifies)                \
	X(finish)                  \
	X(resultStatus)            \
	X(resultErrorField)        \
	X(clear)                   \
	X(ntuples)                 \
	X(nfields)                 \
	X(ftype)                   \
	X(getisnull)               \
	X(getvalue)                \
	X(getlength)

#define LAT_LIBPQ_MEMBER(name) __typeof__(PQ##name) *name;
typedef struct {
	LAT_LIBPQ_FUNCTIONS(LAT_LIBPQ_MEMBER)
} lat_libpq;

const lat_libpq *lat_libpq_load(lat_error *err); /* NULL: LAT_E_IO, the library isn't there */

#endif
