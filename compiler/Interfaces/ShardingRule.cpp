// Definitions generated for the rule interfaces; the builders are in ShardingRuleBuilders.cpp.
#include "compiler/Interfaces/ShardingRule.h"

#include "compiler/Interfaces/ShardingRule.cpp.inc"
