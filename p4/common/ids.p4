/* P4Info ids. The top byte is left zero: the compiler puts the kind there. An id is never used for another thing again. */
#ifndef RINGPATH_IDS
#define RINGPATH_IDS

/* tables */
#define ID_PORT_ROLE       0x000001
#define ID_CLASSIFY        0x000002
#define ID_PATH_FORWARD    0x000003
#define ID_HOST            0x000004
#define ID_ROUTE           0x000005
#define ID_TRAFFIC_CLASS   0x000006
#define ID_ARP             0x000007
#define ID_SWITCH_CONFIG   0x000008
/* next free: 9 */

/* actions */
#define ID_SET_PORT_ROLE      0x000001
#define ID_TAG                0x000002
#define ID_FORWARD            0x000003
#define ID_SINK               0x000004
#define ID_PATH_MISS          0x000005
#define ID_TO_HOST            0x000006
#define ID_ROUTE_TO           0x000007
#define ID_SET_QUEUE          0x000008
#define ID_ARP_REPLY          0x000009
#define ID_SET_SWITCH_CONFIG  0x00000A
/* next free: 0xB */

/* action profiles */
#define ID_ECMP            0x000001

#endif
