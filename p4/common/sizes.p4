/* Table and register sizes. Registers come first in memory: each slot costs 17 cells. */
#ifndef RINGPATH_SIZES
#define RINGPATH_SIZES

#define PORTS          512
#define CLASSIFY_SIZE  16384   /* two entries a flow: forward and reverse */
#define LABEL_SIZE     16384
#define HOST_SIZE      4096
#define ROUTE_SIZE     4096
#define ARP_SIZE       4096
#define DSCP_SIZE      64
#define ECMP_MEMBERS   1024
#define ECMP_GROUP     64
#define ECMP_GROUPS    256     /* where a target wants to know */
#define SLOTS          4096    /* tracked flows of a leaf, each way; slot 0 is "not tracked" */
#define NO_SUCH_SLOT   0xf000  /* bits that are 0 in the number of every slot */
#define SLOT_COPIES    8192    /* two interval copies of each slot */
#define DROP_REASONS   16

#endif
