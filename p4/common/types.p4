/* Constants of the wire format and of the decisions that controls hand to each other. */
#ifndef RINGPATH_TYPES
#define RINGPATH_TYPES

const bit<16> ETHERTYPE_IPV4    = 0x0800;
const bit<16> ETHERTYPE_ARP     = 0x0806;
const bit<16> ETHERTYPE_TAG     = 0x88B5;   /* local experimental 1 (IEEE 802) */
const bit<16> ETHERTYPE_MESSAGE = 0x88B6;   /* local experimental 2 */

const bit<8>  PROTOCOL_TCP = 6;
const bit<8>  PROTOCOL_UDP = 17;
const bit<16> ROCE_PORT    = 4791;          /* RoCEv2 over UDP */

/* Ethernet, IPv4, lengths 6 and 4, request. */
const bit<64> ARP_REQUEST    = 0x0001080006040001;
const bit<16> ARP_OPER_REPLY = 2;

const bit<4>  TAG_VERSION = 1;
const bit<8>  MAX_HOPS    = 8;

const bit<3>  BEST_EFFORT_QUEUE = 0;
const bit<3>  CONTROL_QUEUE     = 7;

const bit<2>  ROLE_EDGE   = 0;
const bit<2>  ROLE_FABRIC = 1;

const bit<16> MESSAGE_MAGIC   = 0x5250;     /* "RP" */
const bit<8>  MESSAGE_VERSION = 1;
const bit<8>  OP_READ    = 1;
const bit<8>  OP_ADVANCE = 2;
const bit<8>  OP_SOURCE  = 3;
const bit<8>  OP_PROBE   = 16;

const bit<8>  PUNT_READOUT = 1;
const bit<8>  PUNT_PROBE   = 2;
const bit<8>  PUNT_ARP     = 3;

/* Index into the counter `drops`. */
typedef bit<8> reason_t;
const reason_t REASON_NONE        = 0;
const reason_t REASON_EDGE_HEADER = 1;
const reason_t REASON_HOP_LIMIT   = 2;
const reason_t REASON_LABEL_MISS  = 3;      /* counted, not dropped: the packet is routed */
const reason_t REASON_HOST_MISS   = 4;
const reason_t REASON_NO_ROUTE    = 5;
const reason_t REASON_TTL         = 6;
const reason_t REASON_UNHANDLED   = 7;
const reason_t REASON_BAD_MESSAGE = 8;

#endif
